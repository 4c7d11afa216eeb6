"""Builds the compiled passes of the core, where there is a C compiler; dpcov works the same without them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE, LIBRARY = Path("src/dpcov/core/passes.c"), Path("src/dpcov/core/_passes.so")
# Every number is to be rounded after every operation, as numpy does: no product is fused with a sum.
FLAGS = [
    *("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
]


class CompiledPassesHook(BuildHookInterface[BuilderConfig]):
    """Adds the library to a wheel, which is then one for this kind of machine and any Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or leave it."""
        del version
        root = Path(self.root)
        if self.target_name != "wheel" or not build(root / SOURCE, root / LIBRARY):
            return
        build_data["artifacts"].append(f"/{LIBRARY.as_posix()}")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def build(source: Path, library: Path) -> bool:
    """Compile with what ``CC`` names, ``cc`` by default; return whether that could be done."""
    # One that runs somewhere keeps the old file, which is then only unnamed.
    library.unlink(missing_ok=True)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not compiler or shutil.which(compiler[0]) is None:
        return False
    command = [*compiler, *FLAGS, str(source), "-o", str(library), "-lm"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
