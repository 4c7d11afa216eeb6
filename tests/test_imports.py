"""What is loaded when: a part of the library brings no other room along."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import dpcov


def all_loaded(statement: str) -> list[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    listing = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)  # noqa: S603
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def loaded(statement: str) -> list[str]:
    """Our modules among them."""
    return [name for name in all_loaded(statement) if name.startswith("dpcov")]


def rooms(names: list[str]) -> set[str]:
    return {name.split(".")[1] for name in names if "." in name}


def test_linear_questions_load_few_modules() -> None:
    names = loaded("import dpcov.linear")
    assert rooms(names) <= {
        "core",
        "linear",
        "laws",
        "losses",
        "checks",
        "arrays",
        "pictures",
        "tables",
        "_extras",
        "_version",
    }
    assert len(names) < 49


def test_the_default_loads_no_rival() -> None:
    table = "[[1.0, 2.0]] * 30"
    names = loaded(f"import dpcov, numpy as np\ndpcov.release(np.array({table}), rho=1)")
    assert "rivals" not in rooms(names)
    assert len(loaded("import dpcov")) <= 2


def test_the_package_itself_loads_hardly_anything() -> None:
    # An interpreter alone has about 60 modules, numpy brings more than 100, what a release uses of SciPy 500.
    names = all_loaded("import dpcov")
    assert len(names) < 80
    assert not {"numpy", "scipy", "narwhals", "pandas", "tqdm"} & set(names)


def test_the_version_loads_no_command() -> None:
    run = "import sys\nsys.argv = ['dpcov', '--version']\nfrom dpcov.cli import main"
    names = all_loaded(f"{run}\ntry:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code")
    assert not {"numpy", "scipy", "narwhals", "dpcov.core", "dpcov.cli.release"} & set(names)
    assert len(names) < 250


def test_a_release_loads_neither_optimisers_nor_splines() -> None:
    assert not {"scipy.optimize", "scipy.interpolate", "sklearn"} & set(all_loaded("import dpcov.release"))


def test_every_public_name_is_there() -> None:
    assert set(dpcov._HOME_OF) == set(dpcov.__all__) == {name for name in dir(dpcov) if name in dpcov.__all__}
    for name in dpcov.__all__:
        value = getattr(dpcov, name)
        assert inspect.getdoc(value)
        # A module of that name must not hide it.
        assert isinstance(value, ModuleType) == (name == "theory")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dpcov.nothing  # type: ignore[attr-defined]


def test_a_function_is_not_hidden_by_the_module_of_its_name() -> None:
    statements = ["import dpcov\ndpcov.theory.Bound"]
    for name in ("release", "plan", "methods"):
        statements += [
            f"import dpcov.{name}, dpcov.artefact, dpcov.plan\nassert callable(dpcov.{name})",
            f"from dpcov import {name}\nimport dpcov.{name}\nassert dpcov.{name} is {name}",
        ]
    # One interpreter, which forgets us in between: most of the time goes into loading others.
    ours = "[name for name in sys.modules if name.split('.')[0] == 'dpcov']"
    forget = f"import sys\nfor name in {ours}: del sys.modules[name]"
    loaded(f"\n{forget}\n".join(statements))
