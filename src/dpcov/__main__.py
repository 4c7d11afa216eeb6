"""``python -m dpcov`` is the command ``dpcov``."""

from dpcov.cli import main

main()
