"""How the site is built: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "extensions"), str(ROOT / "benchmarks")]

import figures  # noqa: E402  (found by the paths above)

import dpcov  # noqa: E402

project = "dpcov"
author = "the authors of dpcov"
project_copyright = "the authors of dpcov"
version = release = dpcov.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "generated",
    "notes",
]
exclude_patterns = ["_build", "_templates", "extensions", "reference/_templates"]
templates_path = ["_templates"]

# Pages say {{ name }} for a figure that a benchmark measured, so that it stands in one place.
myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_substitutions = figures.measured()
myst_heading_anchors = 3

# Every notebook runs, each time: none is older than the code that it shows.
nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_ipywidgets_js: dict[str, str] = {}  # they would be loaded from the network
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc tells the types in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

smartquotes = False  # options of commands begin with two hyphens
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "dpcov"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "dpcov"},
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars: dict[str, list[str]] = {"start": [], "beside-others": [], "changes": []}
