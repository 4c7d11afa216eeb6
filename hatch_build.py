"""Builds the compiled passes of the core, where there is a C compiler; dpcov works the same without them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER, LIBRARY = "src/dpcov/core", "dpcov/core/_passes.so"
# Passes round every number after every operation, as numpy does. Sums of products are exact, also if fused.
SOURCES = {"passes.c": "-ffp-contract=off", "products.c": "-ffp-contract=fast"}
# What ``CC`` may ask for is taken back. When linking, too: some compilers would add code by which the whole
# process flushes subnormal numbers to zero.
FLAGS = [
    *("-std=c11", "-O3", "-fPIC", "-fvisibility=hidden"),
    *("-fno-fast-math", "-fno-unsafe-math-optimizations", "-fno-math-errno", "-fno-trapping-math"),
]


class CompiledPassesHook(BuildHookInterface[BuilderConfig]):
    """Adds the library to a wheel, which is then one for this kind of machine and any Python.

    An editable install finds it beside its source. No other build changes the source tree.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or leave it."""
        if self.target_name != "wheel":
            return
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name, "passes.so")
        built, in_place = build(Path(self.root, FOLDER), library), Path(self.root, "src", LIBRARY)
        if version == "editable":
            _put_in_place(library if built else None, in_place)
            return
        if not built:
            return
        build_data["force_include"][str(library)] = LIBRARY
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: it lies in the wheel now."""
        del version, build_data, artifact_path
        if self.target_name == "wheel":
            self._folder.cleanup()


def build(folder: Path, library: Path) -> bool:
    """Compile with what ``CC`` names, ``cc`` by default; return whether that could be done."""
    with tempfile.TemporaryDirectory() as made:
        objects = {source: str(Path(made, source).with_suffix(".o")) for source in SOURCES}
        commands = [
            [*FLAGS, contract, "-c", str(folder / source), "-o", objects[source]]
            for source, contract in SOURCES.items()
        ]
        commands.append([*FLAGS, "-shared", *objects.values(), "-o", str(library), "-lm"])
        try:
            compiler = shlex.split(os.environ.get("CC", "cc"))
            for command in commands:
                subprocess.run([*compiler, *command], capture_output=True, check=True)  # noqa: S603
        except (OSError, ValueError, subprocess.CalledProcessError):
            return False
    return library.exists()


def _put_in_place(library: Path | None, target: Path) -> None:
    """Replace the library as a whole, or remove an old one: a process that uses that keeps it."""
    new = target.with_suffix(".new")
    try:
        if library is None:
            target.unlink(missing_ok=True)
        else:
            shutil.copy(library, new)
            new.replace(target)
    except OSError:
        new.unlink(missing_ok=True)


def _platform() -> str:
    """Return what pip calls this kind of machine, without a claim about its C library."""
    platforms = (tag.platform for tag in sys_tags())
    return next(name for name in platforms if not name.startswith(("manylinux", "musllinux")))
