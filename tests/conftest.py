"""Fixtures that every part's tests share."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing
from hypothesis import HealthCheck, settings

# How fast a machine is that day is no property of the code: examples have no deadline and no speed check.
settings.register_profile("assay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("assay")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Async tests run on trio's virtual clock: an hour of waiting takes no time."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
