"""Bounds and comparisons of stored runs: what is graded, what is not, and what follows."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import numpy as np

from harness import stats
from harness.api.episodes import RunEpisodes, family, read_episodes, same_versions
from harness.api.request import DEFAULT_STORE
from harness.api.stores import open_store
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.report.comparisons import (
    Bounds,
    BoundsReport,
    ComparisonReport,
    CostLine,
    PairedLine,
    RepeatLine,
    SideLine,
    StratumLine,
    TippingLine,
)
from harness.stats.stratified import Scheme

SCHEMES = get_args(Scheme)


class CompareRequest(Record):
    """`weights`: task, model, episode, or a TOML file of own weights by task, family or model.

    `alpha` is the rate of false claims; intervals are at 1 − alpha.
    """

    weights: str = "task"
    alpha: float = 0.05
    seed: int = 0


def bounds(run: str, other: str | None = None, store: str | Path = DEFAULT_STORE, b_rate: float = 0.5) -> BoundsReport:
    """Where a run's pass rate over all it planned lies; with another, where their difference does.

    `b_rate` is the pass rate assumed among the other's unresolved episodes for the tipping point. Raises StoreError,
    ConfigError.
    """
    with open_store(store) as opened:
        first = read_episodes(opened, run)
        second = None if other is None else read_episodes(opened, other)
    a = _counts(first)
    report = BoundsReport(a=_side_line(first, a), strata=_strata(first), repeats=_repeats(first))
    if second is None:
        return report
    b = _counts(second)
    tasks = [frozenset(episode.task for episode in side.episodes) for side in (first, second)]
    alone = [len(tasks[0] - tasks[1]), len(tasks[1] - tasks[0])]
    note = f"they planned different tasks, {alone[0]} A alone and {alone[1]} B alone: `assay compare` takes common ones"
    return report.model_copy(
        update={
            "b": _side_line(second, b),
            "difference": _pair(stats.identified_difference(a, b)),
            "tipping": _tipping(a, b, b_rate),
            "notes": (note,) if any(alone) else (),
        }
    )


def _tipping(a: stats.Counts, b: stats.Counts, b_rate: float) -> tuple[TippingLine, ...]:
    """Tipping points where none, the given share and all of B's unresolved pass."""
    rates = sorted({0.0, b_rate, 1.0}) if b.unresolved else [b_rate]
    try:
        points = [(rate, stats.tipping_point(a, b, rate)) for rate in rates]
    except stats.StatsError as error:
        raise ConfigError(str(error), place="--b-rate") from error
    if not a.unresolved and not b.unresolved:
        return ()
    return tuple(
        TippingLine(
            b_rate=rate,
            rate=point.rate,
            passes=point.passes,
            passes_to_lead=point.passes_to_lead,
            unresolved=point.unresolved,
            feasible=point.feasible,
            ahead=point.ahead,
        )
        for rate, point in points
    )


def compare(
    a: str, b: str, store: str | Path = DEFAULT_STORE, request: CompareRequest | None = None
) -> ComparisonReport:
    """Compare two sides over their common tasks. A side is a run, or several joined by commas (one scaffold, several
    models): then cells are task × model, and only models that both sides have are compared.

    Raises StoreError; ConfigError when there is nothing in common, or the weights cannot be used.
    """
    request = request or CompareRequest()
    weighting = read_weights(request.weights)
    with open_store(store) as opened:
        sides = [[read_episodes(opened, run) for run in side.split(",")] for side in (a, b)]
    several = any(len(side) > 1 for side in sides)
    notes: list[str] = []
    kept = same_versions(sides, notes)
    first, second = (_episodes(side, kept, several, weighting) for side in sides)
    try:
        found = stats.weighted_comparison(first, second, weighting, level=1 - request.alpha, seed=request.seed)
    except stats.StatsError as error:
        raise ConfigError(
            str(error), remedy="compare runs of one suite; own weights name tasks or strata of it"
        ) from error
    paired = _paired(first, second, found, request.alpha)
    costs = [_cost(side, kept) for side in sides]
    notes += _notes(found, request.weights)
    return ComparisonReport(
        a=_name(sides[0]),
        b=_name(sides[1]),
        weights=request.weights,
        difference=found.difference,
        rate_a=found.a,
        rate_b=found.b,
        level=found.level,
        interval=None if found.interval is None else _pair(found.interval),
        share_above=found.share_above,
        identified=_pair(found.identified),
        tasks=found.tasks,
        cells=found.cells,
        episodes_a=found.episodes_a,
        episodes_b=found.episodes_b,
        only_a=found.only_a,
        only_b=found.only_b,
        ungraded=found.ungraded,
        paired=paired,
        strata=_stratum_rates(first, second) if several else (),
        reversals=_reversed_strata(first, second) if several else None,
        costs=_costs(sides, costs, found),
        notes=tuple(notes),
    )


def read_weights(text: str) -> stats.Weighting:
    """A scheme by name, or own weights from a TOML file. Raises ConfigError."""
    if text in SCHEMES and text != "own":
        return stats.Weighting(cast(Scheme, text))
    try:
        values = tomllib.loads(Path(text).read_text("utf-8"))
    except FileNotFoundError:
        remedy = "give task, model, episode, or a TOML file of weights"
        raise ConfigError("no such weights", place=f"--weights {text}", remedy=remedy) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", place=text) from error
    wrong = [key for key, value in values.items() if isinstance(value, bool) or not isinstance(value, (int, float))]
    if wrong or not values:
        what = f"{wrong[0]!r} is no number" if wrong else "there are no weights"
        raise ConfigError(what, place=text, remedy='write lines such as "csv-join" = 2.0')
    return stats.Weighting("own", {key: float(value) for key, value in values.items()})


def _counts(run: RunEpisodes) -> stats.Counts:
    values = [episode.value for episode in run.episodes]
    try:
        return stats.Counts(len(values), sum(value == 1 for value in values), sum(map(math.isnan, values)))
    except stats.StatsError as error:
        raise ConfigError(str(error), place=run.row.run) from error


def _side_line(run: RunEpisodes, counts: stats.Counts) -> SideLine:
    interval = stats.wilson(counts.passed, counts.graded)
    exact = stats.clopper_pearson(counts.passed, counts.graded)
    bayes = stats.jeffreys(counts.passed, counts.graded)
    return SideLine(
        run=run.row.run,
        agent=run.agent,
        planned=counts.planned,
        graded=counts.graded,
        passed=counts.passed,
        rate=counts.passed / counts.graded if counts.graded else None,
        bounds=_pair(stats.identified(counts)),
        wilson=(float(interval[0]), float(interval[1])),
        exact=(float(exact[0]), float(exact[1])),
        jeffreys=(float(bayes[0]), float(bayes[1])),
        without=dict(Counter(episode.why for episode in run.episodes if episode.why)),
    )


def _strata(run: RunEpisodes) -> tuple[StratumLine, ...]:
    """Coverage by family, the part of a task's id before the slash, worst covered first."""
    found = stats.coverage_by_stratum(
        [family(episode.task) for episode in run.episodes], [episode.value for episode in run.episodes]
    )
    lines = [
        StratumLine(stratum=str(one.stratum), planned=one.planned, graded=one.graded, bounds=_pair(one.bounds))
        for one in found
    ]
    return tuple(sorted(lines, key=lambda line: (line.graded / line.planned, line.stratum)))


def _repeats(run: RunEpisodes) -> tuple[RepeatLine, ...]:
    if run.row.config.repeats == 1:
        return ()
    by_task: dict[str, list[float]] = {}
    for episode in run.episodes:
        by_task.setdefault(episode.task, []).append(episode.value)
    valid = [sum(not math.isnan(value) for value in values) for values in by_task.values()]
    passed = [sum(value == 1 for value in values) for values in by_task.values()]
    lines = []
    for k in range(1, run.row.config.repeats + 1):
        any_of, all_of = stats.pass_any_k(passed, valid, k), stats.pass_all_k(passed, valid, k)
        lines.append(
            RepeatLine(k=k, any_of=any_of.value, all_of=all_of.value, tasks=any_of.tasks, all_tasks=any_of.all_tasks)
        )
    return tuple(lines)


def _episodes(side: Sequence[RunEpisodes], kept: set[str], several: bool, weighting: stats.Weighting) -> stats.Episodes:
    """Strata are models where a side has several runs; else families where own weights name them; else one."""
    by_family = weighting.own is not None and not several
    rows = [(run, episode) for run in side for episode in run.episodes if episode.task in kept]
    strata: list[Hashable] = [
        (run.row.config.model or run.agent) if several else family(episode.task) if by_family else ""
        for run, episode in rows
    ]
    return stats.Episodes.of([episode.task for _, episode in rows], [episode.value for _, episode in rows], strata)


def _paired(a: stats.Episodes, b: stats.Episodes, found: stats.WeightedComparison, alpha: float) -> PairedLine | None:
    """The exact paired test where each side has one episode a cell; None with repeats, no independent pairs."""
    first, second = (dict(zip(zip(s.tasks, s.strata, strict=True), s.values.tolist(), strict=True)) for s in (a, b))
    if len(first) < len(a.tasks) or len(second) < len(b.tasks):
        return None
    cells = [cell for cell in first if cell in second]
    table = stats.transitions([second[cell] for cell in cells], [first[cell] for cell in cells])
    interval = stats.paired_interval(table, 1 - alpha)
    judged = stats.verdict(table, found.identified, alpha)
    test = stats.mcnemar(table.n01, table.n10)
    return PairedLine(
        only_a=table.n01,
        only_b=table.n10,
        both=table.n11,
        neither=table.n00,
        missing=table.missing,
        net=table.net or 0.0,
        churn=table.churn or 0.0,
        p=test.p,
        mid_p=test.mid_p,
        interval=(interval.lower, interval.upper),
        verdict=judged.answer,
        because=judged.because,
        more_pairs=judged.more_pairs,
    )


def _stratum_rates(a: stats.Episodes, b: stats.Episodes) -> tuple[StratumLine, ...]:
    lines = []
    for side, name in ((a, "A"), (b, "B")):
        for one in stats.coverage_by_stratum(side.strata, side.values):
            label = f"{name}: {one.stratum}"
            lines.append(StratumLine(stratum=label, planned=one.planned, graded=one.graded, bounds=_pair(one.bounds)))
    return tuple(lines)


def _reversed_strata(a: stats.Episodes, b: stats.Episodes) -> tuple[int, int] | None:
    """Models whose order differs between the sides: strict reversals of how many pairs."""
    rates = [{one.stratum: one.rate for one in stats.coverage_by_stratum(s.strata, s.values)} for s in (a, b)]
    common = [one for one in rates[0] if one in rates[1]]
    first, second = (np.array([side[one] for one in common], dtype=np.float64) for side in rates)
    found = stats.reversals(first, second)
    return (found.reversed, found.pairs) if found.pairs else None


@dataclass(frozen=True)
class _Cost:
    """Mean cost of an episode in USD: known, or at least."""

    value: float | None
    at_least: float


def _cost(side: Iterable[RunEpisodes], kept: set[str]) -> _Cost:
    own = [episode for run in side for episode in run.episodes if episode.task in kept and episode.version]
    if not own:
        return _Cost(None, 0.0)
    known = [episode.cost_usd for episode in own if episode.cost_usd is not None]
    return _Cost(
        math.fsum(known) / len(own) if len(known) == len(own) else None,
        math.fsum(episode.cost_at_least_usd for episode in own) / len(own),
    )


def _costs(sides: Sequence[Sequence[RunEpisodes]], costs: Sequence[_Cost], found: stats.WeightedComparison) -> CostLine:
    spans = [stats.Interval(one.at_least, math.inf if one.value is None else one.value) for one in costs]
    rates, accuracies = (found.a, found.b), (found.identified_a, found.identified_b)
    candidates = [
        stats.Candidate(name, rate, cost.value, accuracy, span)
        for name, rate, cost, accuracy, span in zip(("A", "B"), rates, costs, accuracies, spans, strict=True)
    ]
    points = stats.frontier(candidates)
    known = [cost.value for cost in costs if cost.value is not None]
    extra = known[0] - known[1] if len(known) == 2 else math.nan
    price = stats.break_even(found.difference, extra, found.identified, spans[0] - spans[1])
    return CostLine(
        cost_a_usd=costs[0].value,
        cost_b_usd=costs[1].value,
        at_least_a_usd=costs[0].at_least,
        at_least_b_usd=costs[1].at_least,
        standing_a=points[0].standing,
        standing_b=points[1].standing,
        break_even=price.value,
        break_even_bounds=None if price.bounds is None else _pair(price.bounds),
        unverified=price.unverified,
        reading=price.reading,
    )


def _notes(found: stats.WeightedComparison, weights: str) -> list[str]:
    notes = []
    if found.only_a or found.only_b:
        notes.append(f"{found.only_a} cells of A only and {found.only_b} of B only are left out")
    if found.ungraded:
        notes.append(f"{found.ungraded} common cells lack a grade on one side: they are in no rate")
    if found.identified.holds(0.0) and found.identified.width > 0:
        notes.append("missing grades alone could turn the difference")
    if found.interval is not None and found.interval.holds(0.0):
        notes.append("the interval over tasks crosses zero")
    return notes


def _name(side: Sequence[RunEpisodes]) -> str:
    return ", ".join(f"{run.row.run} ({run.agent})" for run in side)


def _pair(interval: stats.Interval) -> Bounds:
    return interval.lower, interval.upper
