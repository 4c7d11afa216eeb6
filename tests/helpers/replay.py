"""Two neighbours, the same private answers: everything that can be seen must be the same, byte for byte.

A first run records the answer of every query. A run on a neighbour asks its own rows in earnest, with its own
charges, scans and progress, but what it hands back is the recorded answer. So whatever differs in the end did
not go through a private answer: it is a leak.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from dpcov import opening
from dpcov.core import Curator, Query
from dpcov.sources import _table

_PUBLIC_FIELDS = ("unit", "variance", "radius", "grid", "sigma", "n_rows", "largest_noise", "n_groups",
                  "noise_scale", "samples")  # fmt: skip


@dataclass
class Tape:
    """The answers of one run, in order."""

    answers: list[tuple[bytes, Any]] = field(default_factory=list)
    replaying: bool = False
    place: int = 0

    def pass_on(self, asked: bytes, answer: Any) -> Any:
        """Record an answer, or put the recorded one in its place."""
        if not self.replaying:
            self.answers.append((asked, answer))
            return answer
        assert self.place < len(self.answers), "the neighbour asks more"
        before, recorded = self.answers[self.place]
        self.place += 1
        assert asked == before, "the neighbour asks something else"
        if type(answer) is type(recorded):
            assert _public(answer) == _public(recorded), "a public fact of an answer differs"
        return recorded


def _public(answer: Any) -> dict[str, str]:
    return {name: repr(getattr(answer, name)) for name in _PUBLIC_FIELDS if hasattr(answer, name)}


@contextmanager
def taped(tape: Tape) -> Iterator[list[str]]:
    """Run queries over the tape; gives everything that progress was told, report by report."""
    told: list[str] = []

    class Bars:
        def __init__(self, **_: Any) -> None:
            pass

        @contextmanager
        def __call__(self, purpose: str, n_rows: int | None) -> Iterator[Callable[[int], None]]:
            told.append(f"{purpose}: {n_rows}")
            yield lambda read: told.append(f"{purpose}: {read} of {n_rows}")

    whole = Curator.ask

    def ask(self: Curator, *queries: Query[Any]) -> Any:
        return tape.pass_on(pickle.dumps(queries), whole(self, *queries))

    with pytest.MonkeyPatch.context() as patch:
        # Threads report in the order in which they get there, which is not about rows: one thread reads.
        patch.setattr(_table, "available_threads", lambda: 1)
        patch.setattr(Curator, "ask", ask)
        patch.setattr(opening, "ScanBars", Bars)
        yield told


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and all that it came from, as a debugger or an error reporter finds them."""
    found: list[BaseException | None] = [error]
    while found:
        if (one := found.pop()) is not None:
            yield one
            found += [one.__cause__, one.__context__]


def observe(act: Callable[[], Any], tape: Tape) -> dict[str, Any]:
    """Everything that one can see of `act`, which returns what can be compared."""
    stdout, stderr, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    seen: dict[str, Any] = {}
    try:
        with (
            taped(tape) as told,
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            warnings.simplefilter("always")
            try:
                seen["result"] = act()
            except AssertionError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, both must show the same
                seen["error"] = [
                    (type(one).__name__, repr(one.args), getattr(one, "__notes__", []))
                    for one in chain(error)
                ]
    finally:
        logging.getLogger().removeHandler(handler)
    seen |= {
        "warnings": [str(warning.message) for warning in caught],
        "stdout": stdout.getvalue(),
        "stderr": stderr.getvalue(),
        "log": log.getvalue(),
        "progress": told,
        "queries": len(tape.answers) if not tape.replaying else tape.place,
    }
    return seen


def compare(one: Callable[[], Any], other: Callable[[], Any], *, refused: bool = False) -> list[str]:
    """Return what differs between two neighbours; `other` gets the answers of `one`.

    Unless it is to be `refused`, `one` must come to a result, so that there is something to compare.
    """
    tape = Tape()
    first = observe(one, tape)
    assert refused or ("result" in first and first["queries"] > 0), first
    tape.replaying = True
    try:
        second = observe(other, tape)
    except AssertionError as error:
        return [str(error)]
    return [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]
