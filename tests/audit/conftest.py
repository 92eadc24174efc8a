"""A laboratory: a suite, a store, an engine and a clock that a test may change."""

from __future__ import annotations

from pathlib import Path

import pytest

from .worlds import Laboratory


@pytest.fixture
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    made = Laboratory(tmp_path)
    made.install(monkeypatch)
    return made
