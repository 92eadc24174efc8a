"""What the end-to-end tests share: the pinned base image, a scripted model service, a place for a suite and a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.records.task import ImagePin

from ..sandbox.conftest import base_pin as base_pin  # the same engine, the same image
from .model_service import ModelService, serving
from .world import World


@pytest.fixture
def world(tmp_path: Path, base_pin: ImagePin) -> World:
    """An empty suite and an empty store."""
    return World(tmp_path, base_pin)


@pytest.fixture
def service() -> Iterator[ModelService]:
    with serving() as found:
        yield found
