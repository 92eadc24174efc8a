"""Real archives, read where the user keeps them (ASSAY_DATA, by default ../shared/data), and stores to import into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.store.sqlite import SqliteStore

_CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def airline() -> Path:
    """The folder of tau airline archives; skips where it is not there."""
    folder = Path(os.environ.get("ASSAY_DATA", _CHECKOUT.parent / "shared" / "data")) / "tau_airline"
    if not folder.is_dir():
        pytest.skip(f"no archives in {folder}: set ASSAY_DATA to the folder that holds tau_airline")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "store") as opened:
        yield opened
