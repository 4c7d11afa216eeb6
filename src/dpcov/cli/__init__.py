"""The command-line tool ``dpcov``. One command, one file; `main` is what the shell runs."""

from __future__ import annotations

import sys
import warnings


def _show_warning(message: Warning | str, *_: object) -> None:
    sys.stderr.write(f"Warning: {message}\n")


def main() -> None:
    """Run the command that the shell was given."""
    try:
        from dpcov.cli.app import app  # noqa: PLC0415  (the extra may be missing)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        sys.exit("Error: the command line needs more packages. Run: pip install 'dpcov[cli]'")
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    if "--json" in sys.argv:
        from dpcov.cli.failures import run_for_a_program  # noqa: PLC0415  (as above)

        sys.exit(run_for_a_program(app))
    app(prog_name="dpcov")
