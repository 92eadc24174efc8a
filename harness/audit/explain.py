"""What changed between the last green and the first red of a task."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from harness.audit.history import AuditHistory
from harness.protocols import EvidenceStore
from harness.records.audit import Availability, Sentinel, Table, TableRow
from harness.records.audit_views import Explanation, Side
from harness.records.vocabulary import Outcome

MOST_LINES = 60


def explain(
    task: str, now: Availability, tables: Iterable[Table], store: EvidenceStore, history: AuditHistory
) -> Explanation:
    """Walk back from the newest cycle (`tables`, newest first) to the last one in which the task was green.

    Raises StoreError for damaged evidence.
    """
    rows = _rows(task, tables)
    newest = rows[0][1] if rows else None
    sentinel = Sentinel.GOLD if now.available else _at_fault(newest)
    red, green = (side and _with_trial(store, side) for side in _sides(rows, sentinel))
    changed = red.fingerprint.changed(green.fingerprint) if red and green else ()
    survivors = newest.mutant.survivors if newest and newest.mutant else ()
    return Explanation(
        task=task,
        now=now,
        sentinel=sentinel,
        green=green,
        red=red,
        changed=changed,
        output_diff=_diff(store, green, red),
        survivors=survivors,
        outputs={one.trial: _text(store, one.output) for one in survivors if one.output},
        drift=newest.drift if newest else "",
        note=newest.note if newest else "",
        decisions=tuple(one for one in history.decisions if one.task == task),
    )


def _rows(task: str, tables: Iterable[Table]) -> list[tuple[Table, TableRow]]:
    return [(table, row) for table in tables for row in table.rows if row.task == task]


def _at_fault(row: TableRow | None) -> Sentinel:
    """The first sentinel that found something: gold before null before mutants, as in judging."""
    for sentinel in Sentinel:
        evidence = row.evidence(sentinel) if row is not None else None
        if evidence is not None and evidence.cause is not None:
            return sentinel
    return Sentinel.GOLD


def _sides(rows: list[tuple[Table, TableRow]], sentinel: Sentinel) -> tuple[Side | None, Side | None]:
    """The first red of the present red stretch, and the green before it; without red, the newest green."""
    red: Side | None = None
    for _, row in rows:
        evidence = row.evidence(sentinel)
        if evidence is None:
            continue
        side = Side(cycle=evidence.cycle, at=evidence.at, fingerprint=row.fingerprint, evidence=evidence)
        if evidence.cause is None:
            return red, side
        red = side
    return red, None


def _diff(store: EvidenceStore, green: Side | None, red: Side | None) -> str:
    if green is None or red is None:
        return ""
    then, now = (grader_output(store, side.trial) for side in (green, red))
    lines = list(
        difflib.unified_diff(
            then.splitlines(), now.splitlines(), f"{green.cycle} (green)", f"{red.cycle} (red)", n=2, lineterm=""
        )
    )
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"[… {more} more lines]"] if more > 0 else [])])


def _with_trial(store: EvidenceStore, side: Side) -> Side:
    trials, cause = side.evidence.trials, side.evidence.cause
    telling = next((one.trial for one in side.evidence.survivors), next(iter(trials), None))
    if cause is not None and side.evidence.sentinel is Sentinel.GOLD:
        results = ((trial, store.trial(trial).result) for trial in trials)
        red = (trial for trial, result in results if result is None or result.outcome is not Outcome.PASSED)
        telling = next(red, telling)
    return side.model_copy(update={"trial": telling})


def grader_output(store: EvidenceStore, trial: str | None) -> str:
    """What the grader printed in a trial; "" where there was no grading."""
    if trial is None:
        return ""
    for event in store.events(trial, ["grade"]):
        return "".join(_text(store, event.blobs.get(name)) for name in ("stdout", "stderr"))
    return ""


def _text(store: EvidenceStore, blob: str | None) -> str:
    return "" if blob is None else store.blob(blob).decode("utf-8", "replace")
