"""A zip of CSV matrices and a JSON manifest: plain files that any language reads.

Writing is atomic and gives the same bytes for the same contents. Reading trusts nothing: names, sizes and
checksums are checked, nothing is unpacked to disk, nothing is executed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpcov.arrays import Array
from dpcov.core import ArgumentError, ArtefactError

MANIFEST = "manifest.json"
_MOST_MANIFEST_BYTES = 1 << 26
_MOST_BYTES_A_NUMBER = 32
_MOST_HEADER_BYTES = 1 << 24
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)

# What zipfile, json and csv raise on files that are not what they seem.
_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, csv.Error, EOFError, ValueError, LookupError,
    TypeError, AttributeError, ArithmeticError, RuntimeError,
)  # fmt: skip


class damage_is_an_error:  # noqa: N801 - reads as a phrase after "with"
    """Turn whatever a damaged file raises into an `ArtefactError` that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise ArtefactError(f"{self._path} cannot be read: {reason}.") from error
        if isinstance(error, _DAMAGE) and not isinstance(error, ArtefactError):
            reason = str(error) or type(error).__name__
            raise ArtefactError(f"{self._path} is not a dpcov release, or is damaged: {reason}.") from error


def write_archive(
    path: str | Path, manifest: Mapping[str, Any], tables: Mapping[str, tuple[Sequence[str], Array]]
) -> None:
    """Write a manifest and named tables, each with its header, to one file.

    Parameters
    ----------
    path : path
        Replaced in one step: never half-written.
    manifest : mapping
        Numbers, texts, lists and mappings that JSON can hold.
    tables : mapping
        By file name: the header and a matrix.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpcov.archive import ArchiveReader, write_archive
    >>> write_archive("means.zip", {"rows": 2}, {"means.csv": (("age",), np.array([[41.5]]))})
    >>> with ArchiveReader(Path("means.zip")) as archive:
    ...     archive.manifest["rows"], archive.table("means.csv", ["age"], 1)
    (2, array([[41.5]]))
    """
    texts = {name: _table_text(header, matrix) for name, (header, matrix) in tables.items()}
    checksums = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    described = json.dumps({**manifest, "sha256": checksums}, indent=1, ensure_ascii=False, allow_nan=False)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in {MANIFEST: described.encode("utf-8", "surrogatepass"), **texts}.items():
            entry = zipfile.ZipInfo(name, _FIXED_DATE)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    _replace_file(Path(path), content.getvalue())


def _replace_file(path: Path, content: bytes) -> None:
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ArgumentError(f"path: {path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise ArgumentError(f"path: {path} cannot be written: {error.strerror}.") from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _table_text(header: Sequence[str], matrix: Array) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(header)
    # repr of a float64 is the shortest text that reads back as the same number.
    text.writelines(",".join(map(repr, row)) + "\n" for row in matrix.tolist())
    return text.getvalue().encode("utf-8", "surrogatepass")


class ArchiveReader:
    """A file that may be anything.

    Parameters
    ----------
    path : path
        What to read. Use it inside ``damage_is_an_error``.
    """

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        names = self._archive.namelist()
        if MANIFEST not in names or len(set(names)) < len(names):
            self._archive.close()
            raise ValueError(f"it has no {MANIFEST}")
        try:
            self.manifest = _parse_manifest(self._read(MANIFEST, _MOST_MANIFEST_BYTES))
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def table(self, name: str, header: Sequence[str], n_rows: int) -> Array:
        """Return a matrix of `n_rows` lines after checking its checksum and header."""
        most = _MOST_BYTES_A_NUMBER * n_rows * len(header) + _MOST_HEADER_BYTES
        content = self._read(name, most)
        if hashlib.sha256(content).hexdigest() != self.manifest["sha256"][name]:
            raise ValueError(f"the checksum of {name} is wrong")
        lines = csv.reader(io.StringIO(content.decode("utf-8", "surrogatepass"), newline=""))
        if next(lines) != list(header):
            raise ValueError(f"{name} has another header")
        rows = [[float(cell) for cell in line] for line in lines]
        matrix = (
            np.array(rows, dtype=np.float64).reshape(len(rows), -1) if rows else np.zeros((0, len(header)))
        )
        if matrix.shape != (n_rows, len(header)):
            raise ValueError(f"{name} has another shape")
        return matrix

    def _read(self, name: str, most: int) -> bytes:
        with self._archive.open(name) as file:
            content = file.read(most + 1)
            if len(content) > most:
                raise ValueError(f"{name} is too large")
            return content


def _parse_manifest(content: bytes) -> dict[str, Any]:
    manifest = json.loads(content.decode("utf-8", "surrogatepass"), parse_constant=_refuse_constant)
    if not isinstance(manifest, dict):
        raise TypeError("its manifest is not an object")
    return manifest


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
