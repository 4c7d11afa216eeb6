"""Output files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpcov.cli.failures import FileError


class OutputFile:
    """A file to be written later: its place is tried before anything is spent on its content.

    Parameters
    ----------
    path : Path
        The file to be written.
    room : int
        About how many bytes it will have. The disk must have them now.
    overwrite : bool
        Whether an existing file may be replaced.
    """

    def __init__(self, path: Path, *, room: int, overwrite: bool) -> None:
        if path.is_dir():
            raise FileError(f"{path} is a folder; give the name of a file.")
        if path.exists() and not overwrite:
            raise FileError(f"{path} exists already; choose another name or give --overwrite.")
        self.path = path
        # The suffix stays: it may decide about the format.
        self._draft = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
        with self._explained():
            self._draft.write_bytes(bytes(room))

    def write(self, save: Callable[[Path], object]) -> None:
        """Let `save` write a draft, then put it in place."""
        with self._explained():
            save(self._draft)
            with self._draft.open("rb+") as draft:
                os.fsync(draft.fileno())
            self._draft.replace(self.path)

    def discard(self) -> None:
        """Remove the draft, if there is one."""
        with suppress(OSError):
            self._draft.unlink(missing_ok=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from None
        except BaseException:
            self.discard()
            raise
