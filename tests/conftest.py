"""Fixtures that every part's tests share."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Async tests run on trio's virtual clock: an hour of waiting takes no time."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
