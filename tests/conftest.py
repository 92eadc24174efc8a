"""Fixtures that every part's tests share."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio.testing
from hypothesis import HealthCheck, settings

# How fast a machine is that day is no property of the code: examples have no deadline and no speed check. A test run is
# a verdict on a commit, so it draws the same examples each time; `make explore` is what looks for new ones.
settings.register_profile("assay", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("assay"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "assay"))


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Async tests run on trio's virtual clock: an hour of waiting takes no time."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
