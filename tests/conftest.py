"""Settings that all tests share."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings


def pytest_configure(config: pytest.Config) -> None:
    """Let no test depend on how fast the machine is, and none but audits on luck."""
    settings.register_profile(
        "dpcov",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=config.option.markexpr != "audit",
    )
    settings.load_profile("dpcov")
