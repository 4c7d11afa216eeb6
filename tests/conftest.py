"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# Machines are noisy: how long an example takes says nothing about whether it is right.
settings.register_profile("dpcov", deadline=None)
settings.load_profile("dpcov")
