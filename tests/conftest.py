"""Settings that all tests share: a test passes always or never, at any load."""

from __future__ import annotations

import gc
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from dpcov.core import OSEntropy, SeededBits
from dpcov.sources import _table


def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis look at no clock, and try the same examples each time, but in audits."""
    settings.register_profile(
        "dpcov",
        deadline=None,
        # Fixtures that all examples of a test share are folders and ledgers, which it clears itself.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        derandomize=config.option.markexpr != "audit",
    )
    settings.load_profile("dpcov")
    # Modules and tests are there to stay: looking for garbage among them is a quarter of collecting.
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, but never among what was collected."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Draw the same noise each time, in one thread, but in audits and where the entropy itself is tested."""
    if any(map(item.get_closest_marker, ("audit", "os_entropy"))):
        return (yield)
    with same_noise(item.nodeid), pytest.MonkeyPatch.context() as patch:
        if "sources" not in item.path.parts:
            # Processes that test share the cores: threads of scans would fight over them. Bits are the same.
            patch.setattr(_table, "available_threads", lambda: 1)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Any:
    """So do fixtures that several tests share, whichever of them comes first in a process."""
    if fixturedef.scope == "function" or request.config.option.markexpr == "audit":
        return (yield)
    with same_noise(f"{fixturedef.baseid}::{fixturedef.argname}"):
        return (yield)


@contextmanager
def same_noise(name: str) -> Iterator[None]:
    """Draw noise from a generator that belongs to a name."""
    bits = SeededBits(np.random.default_rng(zlib.crc32(name.encode())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OSEntropy, "words", lambda _, count: bits.words(count))
        yield
