"""A trial's turn: a place in the store's budget of trials in flight, shared with all that runs on the store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from harness.protocols import EvidenceStore
from harness.runner.services import Turn, at_once
from harness.store.slots import Slots
from harness.store.sqlite import SqliteStore

LOOK_AGAIN_S = 0.2  # a lock file tells nobody that it is free


def turn_of(store: EvidenceStore) -> Turn:
    """How trials on this store wait for their turn."""
    return turns(Slots(store.folder)) if isinstance(store, SqliteStore) else at_once


def budget_of(store: EvidenceStore) -> int | None:
    """How many trials may be in flight on this store at once, or None without a limit."""
    return Slots(store.folder).budget() if isinstance(store, SqliteStore) else None


def turns(slots: Slots) -> Turn:
    """Turns in a budget, which is looked up each time: it holds for trials that begin after it was set."""

    @asynccontextmanager
    async def turn(given_up: Callable[[], bool]) -> AsyncIterator[None]:
        place: int | None = None
        while (budget := slots.budget()) is not None and not given_up():
            place = slots.take(budget)
            if place is not None:
                break
            await anyio.sleep(LOOK_AGAIN_S)
        try:
            yield
        finally:
            if place is not None:
                os.close(place)

    return turn
