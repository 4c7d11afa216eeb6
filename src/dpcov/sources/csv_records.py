"""Records of CSV text as RFC 4180 has them, found under a public rule that no value can break.

A record is made of fields between commas and ends with a line break. A field in quotes may hold commas, line
breaks, and quotes written twice; a field without quotes holds neither quotes nor carriage returns. Where no
such record of at most `LONGEST_RECORD` bytes begins, the line alone is one broken record, and reading goes on
after it: a stray quote costs its own line, not the rest of the file.

The work for a broken record lies in that record: what is one cannot be seen in the time that a block takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 22
LONGEST_RECORD = 1 << 24
"""In bytes, its line break included. Far below 2^31, beyond which no reader of CSV goes."""

_NEWLINE, _RETURN, _QUOTE, _COMMA = b"\n"[0], b"\r"[0], b'"'[0], b","[0]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Records:
    """Some records, one after another.

    Attributes
    ----------
    text : bytes
        All of them, with their line breaks.
    ends : ndarray of int64
        The places of the line breaks that end them.
    broken : ndarray of bool
        Which of them are lines that hold no record.
    """

    text: bytes = field(repr=False)
    ends: Places = field(repr=False)
    broken: NDArray[np.bool_] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ends)

    def without_first(self) -> Records:
        """Return all records but the first."""
        start = int(self.ends[0]) + 1
        return Records(self.text[start:], self.ends[1:] - start, self.broken[1:])

    def first(self) -> bytes | None:
        """Return the text of the first record without its line break; None if it is broken."""
        if self.broken[0]:
            return None
        return self.text[: int(self.ends[0])].removesuffix(b"\r")

    def tidy(self, n_fields: int) -> bytes:
        """Return the text with each record that is broken, or not made of `n_fields` fields, left empty."""
        signs = np.frombuffer(self.text, dtype=np.uint8)
        starts = np.concatenate([[0], self.ends[:-1] + 1])
        bad = self.broken.copy()
        if _BYTE_ORDER_MARK in self.text:
            # Arrow passes over the mark where a block begins, but not elsewhere.
            bad |= np.array([self.text.startswith(_BYTE_ORDER_MARK, start) for start in starts.tolist()])
        commas = np.flatnonzero(signs == _COMMA)
        record = np.searchsorted(self.ends, commas)
        if b'"' in self.text:
            quotes = np.flatnonzero(signs == _QUOTE)
            quotes_before = np.searchsorted(quotes, commas) - np.searchsorted(quotes, starts)[record]
            record = record[quotes_before % 2 == 0]
        bad |= np.bincount(record, minlength=len(self)) + 1 != n_fields
        empty = b"," * (n_fields - 1) + b"\n"
        parts, kept = [], 0
        for index in np.flatnonzero(bad).tolist():
            parts += [self.text[kept : int(starts[index])], empty]
            kept = int(self.ends[index]) + 1
        return b"".join([*parts, self.text[kept:]])


def read_records(file: BinaryIO) -> Iterator[Records]:
    """Yield the records of a file, a few megabytes at a time."""
    rest = file.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
    # More at a time while a long record goes on, so that its bytes are not looked at again and again.
    while block := file.read(max(BLOCK_BYTES, len(rest))):
        text = rest + block
        found = find_records(text, at_end=False)
        if len(found):
            yield found
        # A line beyond the longest record is broken whatever comes: its beginning stands for it.
        rest = text[len(found.text) :][: LONGEST_RECORD + 1]
    if rest:
        yield find_records(rest if rest.endswith(b"\n") else rest + b"\n", at_end=True)


def find_records(text: bytes, *, at_end: bool) -> Records:
    """Return the records of a text that begins with one; unless it is `at_end`, the last may be left out.

    If a record begins at a place, quotes open and close in turn from there on. So records end at line breaks
    with an even number of quotes before, up to the first quote or carriage return that is out of place. There
    the record at hand is broken, and reading starts again on the next line.
    """
    signs = np.frombuffer(text, dtype=np.uint8)
    breaks = np.flatnonzero(signs == _NEWLINE)
    quotes = np.flatnonzero(signs == _QUOTE) if b'"' in text else np.empty(0, dtype=np.int64)
    turns = [_turn(signs, breaks, quotes, parity) for parity in (0, 1)]
    ends: list[Places] = []
    broken: list[NDArray[np.bool_]] = []
    start = 0
    while start < len(text):
        places, faults = turns[int(np.searchsorted(quotes, start)) % 2]
        next_fault = int(np.searchsorted(faults, start))
        fault = int(faults[next_fault]) if next_fault < len(faults) else len(text)
        first, last = np.searchsorted(places, [start, fault])
        sound = places[first:last]
        too_long = np.flatnonzero(np.diff(sound, prepend=start - 1) > LONGEST_RECORD)
        if len(too_long):
            sound, fault = sound[: too_long[0]], -1
        ends.append(sound)
        broken.append(np.zeros(len(sound), dtype=np.bool_))
        start = int(sound[-1]) + 1 if len(sound) else start
        if fault == len(text) and not at_end and len(text) - start <= LONGEST_RECORD:
            break
        line = int(np.searchsorted(breaks, start))
        if line == len(breaks):
            break
        ends.append(breaks[line : line + 1])
        broken.append(np.ones(1, dtype=np.bool_))
        start = int(breaks[line]) + 1
    return Records(text[:start], np.concatenate(ends), np.concatenate(broken))


def _turn(signs: NDArray[np.uint8], breaks: Places, quotes: Places, parity: int) -> tuple[Places, Places]:
    """Return the line breaks outside quotes, and what is out of place, if every second quote opens a field.

    `parity` says whether the even or the odd ones do.
    """
    last = len(signs) - 1
    opens = np.arange(len(quotes)) % 2 == parity
    before = np.where(quotes > 0, signs[quotes - 1], _NEWLINE)
    after = signs[np.minimum(quotes + 1, last)]
    may_open = (before == _COMMA) | (before == _NEWLINE) | (before == _QUOTE)
    may_close = (after == _COMMA) | (after == _NEWLINE) | (after == _RETURN) | (after == _QUOTE)
    faults = quotes[~np.where(opens, may_open, may_close | (quotes == last))]
    returns = np.flatnonzero(signs == _RETURN)
    stray = returns[(returns < last) & (signs[np.minimum(returns + 1, last)] != _NEWLINE)]
    stray = stray[np.searchsorted(quotes, stray) % 2 == parity]
    outside = breaks[np.searchsorted(quotes, breaks) % 2 == parity]
    return outside, np.sort(np.concatenate([faults, stray]))
