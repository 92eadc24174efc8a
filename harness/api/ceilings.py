"""What was achievable when a run was made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harness.adaptive.engine import AdaptiveEngine
from harness.adaptive.state import Withdrawal
from harness.api.adaptive import read_bank, settings_for
from harness.audit.cycle import SOLVERS
from harness.audit.score import Estimated, score_run
from harness.protocols import EvidenceStore
from harness.records.run import RunRow
from harness.runner.schedule import UPDATE


def ceiling_of(run: str, store: EvidenceStore) -> str:
    """One line on what was achievable when a run was made, and what it scores on that; "not measured" without an
    audit."""
    if store.run(run).config.solver.name in SOLVERS.values():
        return "this run is of those that measure it"
    found = score_run(run, store, None, achievable_estimate)
    if found.score is None:
        return found.ceiling
    return f"{100 * found.score:.1f} % of what was achievable; {found.ceiling}"


def achievable_estimate(row: RunRow, store: EvidenceStore, out: Collection[str]) -> Estimated:
    """The estimate of an adaptive run over its tasks but those left `out`, from its own events and bank.

    A left-out task tells nothing about the agent: neither its outcome nor its prediction counts. Raises StoreError.
    """
    adaptive = row.config.adaptive
    assert adaptive is not None
    assert adaptive.bank is not None
    bank = read_bank(adaptive.bank, store)
    engine = AdaptiveEngine(bank, replace(settings_for(adaptive, bank, store), stops=()))
    left_out = set(out)
    engine.replay(event.payload for event in store.events(row.run, [UPDATE]) if event.payload["item"] not in left_out)
    for task in bank.item_ids:
        if task in left_out:
            engine.withdraw(task, Withdrawal.UNAVAILABLE, "audit")
    found = engine.estimate()
    return found.value, found.lower, found.upper, found.method
