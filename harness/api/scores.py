"""Scores of stored runs on what was achievable."""

from __future__ import annotations

from pathlib import Path

from harness.api.ceilings import achievable_estimate
from harness.api.opening import open_store
from harness.api.request import DEFAULT_STORE
from harness.audit.diagnose import diagnose
from harness.audit.history import read_history
from harness.audit.score import score_run
from harness.audit.series import series_of
from harness.protocols import EvidenceStore
from harness.records.audit import Policy
from harness.records.score import Comparison, Score


def score(
    run: str, baseline: str | None = None, store: str | Path = DEFAULT_STORE, policy: Policy | None = None
) -> Comparison:
    """The score of a run on the achievable denominator, alone or beside a baseline's. Raises StoreError."""
    with open_store(store) as opened:
        now = score_run(run, opened, policy, achievable_estimate)
        if baseline is None:
            return Comparison(score=now)
        then = score_run(baseline, opened, policy, achievable_estimate)
        why = _incomparable(then, now, opened)
        found = None if why else diagnose(then, now)
        return Comparison(score=now, baseline=then, diagnosis=found, incomparable=why)


def _incomparable(then: Score, now: Score, store: EvidenceStore) -> str | None:
    """Why no difference between two runs is told, or None."""
    if then.suite != now.suite:
        return f"the runs are of different suites ({then.suite}, {now.suite})"
    if then.suite_version != now.suite_version:
        return f"the series broke: suite version {then.suite_version[7:19]} → {now.suite_version[7:19]}"
    breaks = series_of(read_history(store, now.suite)).between(then.created, now.created)
    if breaks:
        return f"the series broke on {breaks[0].at[:10]}: {breaks[0].why}"
    unmeasured = [one.run for one in (then, now) if not one.measured]
    if unmeasured:
        return f"the ceiling was not measured for {' and '.join(unmeasured)}"
    return None
