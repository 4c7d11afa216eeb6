"""A release as a file, and back, to the last bit.

``docs/release.md`` describes the format for readers without dpcov.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpcov.archive import ArchiveReader, damage_is_an_error, write_archive
from dpcov.arrays import Array
from dpcov.core import Charge, PrivacyCost, Receipt
from dpcov.laws import NoiseLaw
from dpcov.linear.known import constant_name
from dpcov.losses import LossLaw
from dpcov.privacy_unit import WEIGHTINGS, PrivacyUnit
from dpcov.provenance import Provenance
from dpcov.released import Part, Release
from dpcov.sources.encoding import PAIRWISE, Encoding, encoding_from_plain, encoding_to_plain

T = TypeVar("T")

FORMAT = "dpcov release"
SCHEMA_VERSION = 2

# In the format, the laws of losses are called the tail.
_MOMENT, _NOISE, _LOSSES = "second_moment.csv", "noise_map.csv", "tail.csv"
_LOSS_HEADER = ("rows", "shape", "spread")
_NOISE_NUMBERS = ("sigma", "hidden", "overstated")
_LOSS_NUMBERS = ("radius", "evenness", "restored", "restored_constant", "tilt")
_MOST_COLUMNS = 20_000
_MOST_LAWS = 100_000
_RATIONAL = re.compile(r"-?[0-9]{1,2000}(/[0-9]{1,2000})?")
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def save_release(release: Release, path: str | Path) -> None:
    """Write a release to one file.

    Parameters
    ----------
    release : Release
        The release to write.
    path : path
        Usually with the suffix ``.dpcov``. An existing file is replaced in one step.
    """
    names = _names(release.released_columns, intercept=release.intercept)
    tables: dict[str, tuple[tuple[str, ...], Array]] = {_MOMENT: (names, release._matrix)}  # noqa: SLF001
    noise, losses = release.noise, release.losses
    if noise is not None:
        tables[_NOISE] = (tuple(f"n{i}" for i in range(len(names))), noise.inverse)
    if losses:
        laws = [np.column_stack([law.rows, law.shape, law.spread]) for law in losses]
        tables[_LOSSES] = (_LOSS_HEADER, np.vstack(laws))
    manifest = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "columns": list(release.released_columns),
        "schema": None if release.encoding is None else encoding_to_plain(release.encoding),
        "intercept": release.intercept,
        "n_rows": release.n_units if release.unit is None else None,
        "unit": None
        if release.unit is None
        else {"name": release.unit.name, "weighting": release.unit.weighting, "count": release.n_units},
        "method": release.method,
        "options": to_plain(release.options),
        "private": release.receipt.private,
        "receipt": _receipt_to_plain(release.receipt),
        "noise": None if noise is None else {name: getattr(noise, name) for name in _NOISE_NUMBERS},
        "tail": [
            {
                "laws": len(law.rows),
                "directions": law.directions,
                "along": None if law.along is None else law.along.tolist(),
                "measured": law.measured,
                **{name: getattr(law, name) for name in _LOSS_NUMBERS},
            }
            for law in losses
        ],
        "diagnostics": to_plain(release.diagnostics),
        "versions": dict(release.versions),
        "provenance": _provenance_to_plain(release.provenance),
        "parts": [
            {
                "count": part.n_units,
                "private": part.receipt.private,
                "receipt": _receipt_to_plain(part.receipt),
                "provenance": _provenance_to_plain(part.provenance),
            }
            for part in release.parts
        ],
    }
    write_archive(path, manifest, tables)


def _receipt_to_plain(receipt: Receipt) -> dict[str, Any]:
    return {
        "limit": _cost_to_plain(receipt.limit),
        "charges": [{"purpose": charge.purpose, **_cost_to_plain(charge.cost)} for charge in receipt.charges],
    }


def _provenance_to_plain(provenance: Provenance) -> dict[str, Any]:
    return {
        "date": provenance.date,
        "dataset": provenance.dataset,
        "purpose": provenance.purpose,
        "delta": None if provenance.delta is None else str(provenance.delta),
    }


def load(path: str | Path) -> Release:
    """Read a release that `Release.save` wrote.

    Parameters
    ----------
    path : path
        The file. It may come from anyone: nothing in it is executed.

    Returns
    -------
    Release

    Raises
    ------
    ArtefactError
        If the file cannot be read, is something else, is damaged, or was written by a later version.

    Examples
    --------
    >>> import numpy as np
    >>> import dpcov
    >>> people = np.random.default_rng(0).normal(size=(50_000, 2)) @ [[10, 6], [0, 5]] + [170, 62]
    >>> made = dpcov.release(people, rho=1, columns=["height", "weight"])
    >>> made.save("people.dpcov")
    >>> dpcov.load("people.dpcov").mean().values.round()
    array([170.,  62.])
    """
    place = Path(path)
    with damage_is_an_error(place), ArchiveReader(place) as archive:
        return _read_release(archive)


def _read_release(archive: ArchiveReader) -> Release:
    manifest = archive.manifest
    if manifest["format"] != FORMAT:
        raise ValueError("it is of another format")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise ValueError(
            f"its schema version is {manifest['schema_version']!r}, this dpcov reads {SCHEMA_VERSION}; "
            "another version of dpcov may read it"
        )
    columns = tuple(_typed(name, str) for name in _typed(manifest["columns"], list))
    if not 0 < len(columns) <= _MOST_COLUMNS or len(set(columns)) < len(columns):
        raise ValueError("its columns are not distinct names")
    intercept = _typed(manifest["intercept"], bool)
    names = _names(columns, intercept=intercept)
    unit, encoding = _read_unit(manifest), _read_encoding(manifest, columns)
    if encoding is not None and encoding.missing == PAIRWISE and not intercept:
        raise ValueError("it is pairwise without a constant")
    parts = tuple(
        Part(_whole(part["count"]), _read_receipt(part), _read_provenance(part))
        for part in _typed(manifest.get("parts", []), list)
    )
    return Release(
        columns=columns if encoding is None else encoding.values,
        n_units=_whole(manifest["n_rows"] if unit is None else manifest["unit"]["count"]),
        method=_typed(manifest["method"], str),
        options=from_plain(_typed(manifest["options"], dict)),
        receipt=_read_receipt(manifest),
        diagnostics=from_plain(_typed(manifest["diagnostics"], dict)),
        intercept=intercept,
        noise=_read_noise(archive, len(names)),
        losses=_read_losses(archive, len(columns), max(len(parts), 1)),
        versions={_typed(k, str): _typed(v, str) for k, v in _typed(manifest["versions"], dict).items()},
        _matrix=_read_moment(archive, names),
        provenance=_read_provenance(manifest),
        unit=unit,
        parts=parts,
        encoding=encoding,
    )


def _read_unit(manifest: Mapping[str, Any]) -> PrivacyUnit | None:
    # Releases of earlier versions protect rows, and do not say so.
    stored = manifest.get("unit")
    if stored is None:
        return None
    name, weighting = _typed(stored["name"], str), _typed(stored["weighting"], str)
    if not name or weighting not in WEIGHTINGS or manifest["n_rows"] is not None:
        raise ValueError("its privacy unit is not valid")
    return PrivacyUnit(name, weighting)


def _read_encoding(manifest: Mapping[str, Any], columns: tuple[str, ...]) -> Encoding | None:
    # Releases of earlier versions know names alone.
    stored = manifest.get("schema")
    if stored is None:
        return None
    encoding = encoding_from_plain(_typed(stored, dict))
    if encoding.columns != columns:
        raise ValueError("its schema is that of other columns")
    return encoding


def _read_provenance(manifest: Mapping[str, Any]) -> Provenance:
    # Releases of earlier versions say nothing of it.
    stored = _typed(manifest.get("provenance", {}), dict)
    date, dataset, purpose = (_typed(stored.get(name, ""), str) for name in ("date", "dataset", "purpose"))
    delta = stored.get("delta")
    return Provenance(date, dataset, purpose, None if delta is None else _rational(delta, "delta"))


def _read_moment(archive: ArchiveReader, names: tuple[str, ...]) -> Array:
    matrix = archive.table(_MOMENT, names, len(names))
    if not (np.isfinite(matrix).all() and (matrix == matrix.T).all() and (np.diag(matrix) >= 0).all()):
        raise ValueError("its matrix is not a second moment")
    return matrix


def _read_noise(archive: ArchiveReader, size: int) -> NoiseLaw | None:
    stored = archive.manifest["noise"]
    if stored is None:
        return None
    inverse = archive.table(_NOISE, [f"n{i}" for i in range(size)], size)
    sigma = _real(stored["sigma"])
    hidden, overstated = _real(stored.get("hidden", 0.0)), _real(stored.get("overstated", 1.0))
    if not (np.isfinite(inverse).all() and sigma > 0 and hidden >= 0 and overstated >= 1):
        raise ValueError("its noise law is not valid")
    return NoiseLaw(inverse, sigma, hidden, overstated)


def _read_losses(archive: ArchiveReader, n_columns: int, n_tables: int) -> tuple[LossLaw, ...]:
    stored = _typed(archive.manifest["tail"], list)
    counts = [_whole(law["laws"]) for law in stored]
    if sum(counts) > _MOST_LAWS:
        raise ValueError("its tail has too many laws")
    if not stored:
        return ()
    table = archive.table(_LOSSES, _LOSS_HEADER, sum(counts))
    parts = np.split(table, np.cumsum(counts)[:-1])
    laws = tuple(_read_law(law, part, n_columns) for law, part in zip(stored, parts, strict=True))
    if sum(law.along is None for law in laws) > n_tables:
        raise ValueError("its tail has two laws for all directions")
    return laws


def _read_law(stored: Mapping[str, Any], table: Array, n_columns: int) -> LossLaw:
    rows, shape, spread = np.ascontiguousarray(table.T)
    numbers = {name: _real(stored[name]) for name in _LOSS_NUMBERS}
    along = None
    if stored["along"] is not None:
        along = np.array([_real(number) for number in _typed(stored["along"], list)])
    sound = (
        (rows >= 0).all() and (spread > 0).all() and (np.abs(shape) < 1).all() and np.isfinite(table).all()
    )
    if not (sound and min(numbers.values()) >= 0 and (along is None or len(along) == n_columns)):
        raise ValueError("its tail is not valid")
    # In releases of earlier versions nothing was given back to means.
    measured = _typed(stored.get("measured", False), bool)
    # A law of a direction may come on top of others, and then has no directions of its own.
    directions = 0 if along is not None and stored["directions"] == 0 else _whole(stored["directions"])
    return LossLaw(rows, shape, spread, directions=directions, along=along, measured=measured, **numbers)


def _read_receipt(manifest: Mapping[str, Any]) -> Receipt:
    stored = _typed(manifest["receipt"], dict)
    charges = tuple(
        Charge(_typed(charge["purpose"], str), _cost_from_plain(charge))
        for charge in _typed(stored["charges"], list)
    )
    return Receipt(_cost_from_plain(stored["limit"]), charges, _typed(manifest["private"], bool))


def _names(columns: tuple[str, ...], *, intercept: bool) -> tuple[str, ...]:
    return (*columns, constant_name(columns)) if intercept else columns


def _cost_to_plain(cost: PrivacyCost) -> dict[str, str | bool]:
    return {"rho": str(cost.rho), "delta": str(cost.delta), "gaussian": cost.gaussian}


def _cost_from_plain(stored: Mapping[str, Any]) -> PrivacyCost:
    # Releases of old have the discrete Gaussian, which is no Gaussian mechanism, and do not say so.
    gaussian = _typed(stored.get("gaussian", False), bool)
    return PrivacyCost(_rational(stored["rho"], "rho"), _rational(stored["delta"], "delta"), gaussian)


def _rational(stored: Any, name: str) -> Fraction:
    text = _typed(stored, str)
    if not _RATIONAL.fullmatch(text):
        raise ValueError(f"{name} is not a rational number")
    return Fraction(text)


def to_plain(value: Any) -> Any:
    """Return what JSON can hold; a float that is not finite becomes ``{"float": "inf"}``.

    Examples
    --------
    >>> import math
    >>> from dpcov.artefact import from_plain, to_plain
    >>> to_plain({"bounds": (0.5, math.inf)})
    {'bounds': [0.5, {'float': 'inf'}]}
    >>> from_plain(to_plain({"bounds": (0.5, math.inf)}))
    {'bounds': [0.5, inf]}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def from_plain(value: Any) -> Any:
    """Undo `to_plain`."""
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return _NOT_FINITE[value["float"]]
        return {key: from_plain(item) for key, item in value.items()}
    return [from_plain(item) for item in value] if isinstance(value, list) else value


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} was expected in the manifest")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise TypeError("a positive whole number was expected in the manifest")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number was expected in the manifest")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a finite number was expected in the manifest")
    return number
