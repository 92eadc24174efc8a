"""Between two runs of one agent: what the agent did, and what the instrument did (SOURCES S1, the diagnosis rule).

If gold falls about as much as the agent, the change is in the harness; if gold holds and the agent falls, it is in the
agent. Here task by task: those that died or opened are the instrument's, those available in both are the agent's.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from harness.records.score import Diagnosis, Score, TaskScore, TaskState, Verdict
from harness.stats.paired import newcombe

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class _Pair:
    then: TaskScore
    now: TaskScore

    @property
    def change(self) -> float:
        return (self.now.rate or 0.0) - (self.then.rate or 0.0)


def diagnose(baseline: Score, score: Score) -> Diagnosis:
    """The change from `baseline` to `score`, taken apart. Both are measured, and of one series."""
    before = {state.task: state for state in baseline.states}
    pairs = [_Pair(before[state.task], state) for state in score.states if state.task in before]
    died = [pair for pair in pairs if _available(pair.then) and not _available(pair.now)]
    opened = [pair for pair in pairs if not _available(pair.then) and _available(pair.now)]
    both = [pair for pair in pairs if _available(pair.then) and _available(pair.now)]
    common = [pair for pair in both if pair.then.rate is not None and pair.now.rate is not None]
    gained = sum(max(0.0, pair.change) for pair in common)
    lost = sum(max(0.0, -pair.change) for pair in common)
    interval = _interval(common)
    change = _total(pairs)
    parts = _total(died), _total(opened), gained - lost
    moved = interval is not None and not interval[0] <= 0.0 <= interval[1]
    verdict = {
        (True, True): Verdict.BOTH,
        (True, False): Verdict.INSTRUMENT,
        (False, True): Verdict.AGENT,
        (False, False): Verdict.NONE,
    }[bool(died or opened), moved]
    found = Diagnosis(
        baseline=baseline.run,
        run=score.run,
        verdict=verdict,
        sentence="",
        change=change,
        died=_names(died),
        died_change=parts[0],
        opened=_names(opened),
        opened_change=parts[1],
        elsewhere_change=change - sum(parts),
        common=len(common),
        gained=gained,
        lost=lost,
        difference=(gained - lost) / len(common) if common else None,
        interval=interval,
    )
    return found.model_copy(update={"sentence": _sentence(found)})


def _available(state: TaskScore) -> bool:
    return state.state is not TaskState.UNAVAILABLE


def _total(pairs: Iterable[_Pair]) -> float:
    return sum(pair.change for pair in pairs)


def _names(pairs: Iterable[_Pair]) -> tuple[str, ...]:
    return tuple(pair.now.task for pair in pairs)


def _interval(common: list[_Pair]) -> tuple[float, float] | None:
    if not common:
        return None
    rates = [(pair.then.rate or 0.0, pair.now.rate or 0.0) for pair in common]
    if all(rate in (0.0, 1.0) for pair in rates for rate in pair):
        both, gained, lost = (rates.count(kind) for kind in ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0)))
        lower, upper = newcombe(both, gained, lost, len(rates) - both - gained - lost)
        return float(lower), float(upper)
    return _of_mean([now - then for then, now in rates])


def _of_mean(changes: list[float]) -> tuple[float, float]:
    """The normal interval for a mean over tasks, whose repeats make changes that are not −1, 0 or 1; one task tells
    nothing."""
    if len(changes) < 2:
        return -1.0, 1.0
    mean, half = statistics.fmean(changes), NORMAL_95 * statistics.stdev(changes) / len(changes) ** 0.5
    return max(-1.0, mean - half), min(1.0, mean + half)


def _sentence(found: Diagnosis) -> str:
    instrument = f"{len(found.died)} tasks died ({found.died_change:+g} passes)"
    if found.opened:
        instrument += f", {len(found.opened)} opened ({found.opened_change:+g})"
    agent = f"{found.gained:g} gained and {found.lost:g} lost on the {found.common} tasks available in both"
    if found.interval is not None and found.difference is not None:
        lower, upper = (100 * bound for bound in found.interval)
        agent += f" ({100 * found.difference:+.1f} pp, 95 % interval [{lower:+.1f}, {upper:+.1f}])"
    rest = f"; {found.elsewhere_change:+g} on tasks that count in neither" if found.elsewhere_change else ""
    head = {
        Verdict.INSTRUMENT: "the change is in the instrument",
        Verdict.AGENT: "the change is in the agent",
        Verdict.BOTH: "the agent and the instrument both changed",
        Verdict.NONE: "no change is shown, neither in the agent nor in the instrument",
    }[found.verdict]
    return f"{head}: {found.change:+g} passes; {instrument}; {agent}{rest}"
