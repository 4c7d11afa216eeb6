"""Outcomes as CSV files, one line each, and back."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from world_answers import Tally

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")


def write_outcomes(outcomes: Sequence[DataclassInstance], path: Path) -> None:
    """Write one line an outcome; the parts of a tally become columns such as ``means_held``.

    Parameters
    ----------
    outcomes : sequence of dataclass
        At least one, all of one class. Fields are numbers, words, tuples of words and tallies.
    path : path
        The file.
    """
    records = [_flat(outcome) for outcome in outcomes]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def read_outcomes(kind: type[T], path: Path) -> list[T]:
    """Read what `write_outcomes` wrote, to summarise several runs together.

    Parameters
    ----------
    kind : type
        The class of the outcomes.
    path : path
        The file.
    """
    with path.open(newline="") as file:
        return [_from_record(kind, record) for record in csv.DictReader(file)]


def _flat(outcome: DataclassInstance) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in asdict(outcome).items():
        if isinstance(value, dict):
            record |= {f"{name}_{part}": number for part, number in value.items()}
        else:
            record[name] = " ".join(value) if isinstance(value, tuple) else value
    return record


def _from_record(kind: type[T], record: dict[str, str]) -> T:
    values: dict[str, Any] = {}
    for entry in fields(kind):
        name = entry.name
        match entry.type:
            case "Tally":
                values[name] = Tally(
                    **{part.name: int(record[f"{name}_{part.name}"]) for part in fields(Tally)}
                )
            case "int":
                values[name] = int(record[name])
            case "float":
                values[name] = float(record[name])
            case "bool":
                values[name] = record[name] == "True"
            case "tuple[str, ...]":
                values[name] = tuple(record[name].split())
            case _:
                values[name] = record[name]
    return kind(**values)
