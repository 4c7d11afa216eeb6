from __future__ import annotations

from typing import Any

import pytest

import dpcov
from dpcov.methods import Method, find_method


def test_every_method_says_what_one_must_know() -> None:
    for method in dpcov.methods():
        assert method.citation
        assert method.privacy
        assert method.needs
        assert method.assumes
        assert set(method.requires) <= set(method.parameters())
        assert "allow_unvetted" not in method.parameters()
        if method.available:
            assert not method.reason
        else:
            assert method.reason
            assert method.rate
    names = [method.name for method in dpcov.methods()]
    assert len(set(names)) == len(names)


def test_the_default_is_vetted_and_needs_nothing() -> None:
    default = find_method("whitening")
    assert default.vetted
    assert not default.requires


def test_a_method_shows_whether_it_is_vetted() -> None:
    assert repr(find_method("whitening")) == "<dpcov method 'whitening': vetted, mu-GDP and rho-zCDP>"
    assert "'exponential': UNVETTED, epsilon-DP" in repr(find_method("exponential"))
    rates = [method for method in dpcov.methods() if not method.available]
    assert rates
    assert all("cannot be run" in repr(method) for method in rates)


def test_methods_without_an_algorithm_say_why() -> None:
    with pytest.raises(dpcov.ArgumentError, match=r"sum-of-squares.*listed for its rate"):
        dpcov.release([[1.0]], rho=1, method="kothari-2021")
    with pytest.raises(dpcov.ArgumentError, match="exponential in the columns"):
        find_method("aden-ali-2020").check({})


@pytest.mark.parametrize("method", [one for one in dpcov.methods() if one.requires], ids=lambda one: one.name)
def test_a_method_that_is_not_told_enough_is_refused_before_rows_are_looked_at(method: Method) -> None:
    unread = object()
    for missing in method.requires:
        told: dict[str, Any] = dict.fromkeys(method.requires, 1.0) | {missing: None}
        with pytest.raises(dpcov.ArgumentError, match=rf"'{method.name}' needs {missing}: .*not come from"):
            dpcov.release(unread, rho=1, method=method.name, allow_unvetted=True, **told)


@pytest.mark.parametrize("name", ["aggregate", "unbounded", "leverage", "recursive"])
def test_a_method_with_a_delta_of_its_own_is_refused_without_one(name: str) -> None:
    told: dict[str, Any] = {"m": 10} if name in {"aggregate", "recursive"} else {}
    with pytest.raises(dpcov.ArgumentError, match="needs a delta in its budget"):
        dpcov.release(object(), rho=1, method=name, allow_unvetted=True, **told)
