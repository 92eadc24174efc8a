"""Where a suite's series breaks: scores before and after a break are not of one instrument."""

from __future__ import annotations

from dataclasses import dataclass

from harness.audit.history import AuditHistory
from harness.records.audit import Cycle, DecisionKind
from harness.records.audit_views import Break, TrendPoint


@dataclass(frozen=True)
class Series:
    """The breaks of a suite, in order of time."""

    breaks: tuple[Break, ...]

    def number(self, at: str) -> int:
        """How many breaks lie before a moment (or at it)."""
        return sum(one.at <= at for one in self.breaks)

    def between(self, one: str, other: str) -> tuple[Break, ...]:
        """The breaks between two moments."""
        first, last = sorted((one, other))
        return tuple(found for found in self.breaks if first < found.at <= last)


def series_of(history: AuditHistory) -> Series:
    """Breaks come with a repair, a retirement and every first cycle of another suite version."""
    breaks = [
        Break(at=decision.at, why=f"{decision.kind.value} of {decision.task}: {decision.reason}")
        for decision in history.decisions
        if decision.kind is not DecisionKind.ACCEPT
    ]
    before: Cycle | None = None
    for cycle in history.cycles.values():
        if before is not None and before.suite_version != cycle.suite_version:
            why = f"suite version {before.suite_version[7:19]} → {cycle.suite_version[7:19]}"
            breaks.append(Break(at=cycle.started, why=why))
        before = cycle
    return Series(tuple(sorted(breaks, key=lambda one: one.at)))


def trend(history: AuditHistory, series: Series) -> tuple[TrendPoint, ...]:
    """Every finished cycle, in order."""
    return tuple(
        TrendPoint(
            cycle=cycle.cycle,
            at=cycle.finished or cycle.started,
            suite_version=cycle.suite_version,
            series=series.number(cycle.started),
            tasks=cycle.tasks,
            achievable=cycle.achievable or 0,
            causes=cycle.causes,
        )
        for cycle in history.finished
    )
