from __future__ import annotations

import pytest

from dpcov._extras import require
from dpcov.core import MissingExtraError


def test_a_missing_extra_names_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'dpcov\[spark\]'"):
        require("no_such_module.inside", "spark")


def test_a_present_module_is_returned() -> None:
    assert require("json", "spark").dumps({}) == "{}"
