"""Reading evidence: stores, summaries, and outcomes as a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.adaptive.estimators import Estimate
from harness.api.adaptive import engine_for
from harness.api.ceilings import ceiling_of
from harness.api.opening import open_store as open_store
from harness.api.request import DEFAULT_STORE
from harness.protocols import EvidenceStore
from harness.records.run import RunRow
from harness.report.overview import RunLine, overview
from harness.report.summary import Summary, summarise
from harness.runner.schedule import UPDATE
from harness.store.flat import flat_frame, flat_rows

if TYPE_CHECKING:
    import pandas as pd  # forty megabytes that only `outcomes` needs


def summary(run: str, store: str | Path = DEFAULT_STORE) -> Summary:
    """The summary of a stored run, by id, unique prefix or `latest`."""
    with open_store(store) as opened:
        return summarise(opened, run, estimate_of, ceiling_of)


def outcomes(run: str, store: str | Path = DEFAULT_STORE) -> pd.DataFrame:
    """One row per attempt: agent, scaffold, model, task, outcome (a word), reason, stop, cost, tokens, steps, seconds.

    Unknown values are missing (NA), never 0.
    """
    with open_store(store) as opened:
        return flat_frame(flat_rows(opened, opened.run(run).run))


def list_runs(store: str | Path = DEFAULT_STORE) -> tuple[RunLine, ...]:
    """Every run of a store with its score, counts and state, newest first. Raises StoreError."""
    with open_store(store) as opened:
        return overview(opened, estimate_of)


def estimate_of(row: RunRow, store: EvidenceStore) -> Estimate | None:
    """The estimate of an adaptive run, re-derived from its own events and bank; None for a fixed run."""
    if row.config.adaptive is None:
        return None
    engine = engine_for(row.config, store)
    engine.replay(event.payload for event in store.events(row.run, [UPDATE]))
    return engine.estimate()
