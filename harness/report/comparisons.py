"""Bounds, comparisons and boards: the records, and the records as text. Rates and differences are shares."""

from __future__ import annotations

from typing import Literal

from harness.records.base import Record
from harness.report.words import one_line

Bounds = tuple[float, float]
Standing = Literal["frontier", "perhaps", "dominated"]
MOST_LINES = 20


class SideLine(Record):
    """One run. `bounds` is the identification interval of what was planned; `wilson`, `exact` (Clopper–Pearson) and
    `jeffreys` are 95 % intervals of the graded share, for tasks like these. `without` counts reasons of no grade."""

    run: str
    agent: str
    planned: int
    graded: int
    passed: int
    rate: float | None
    bounds: Bounds
    wilson: Bounds
    exact: Bounds
    jeffreys: Bounds
    without: dict[str, int]


class StratumLine(Record):
    """Coverage and bounds of one stratum."""

    stratum: str
    planned: int
    graded: int
    bounds: Bounds


class RepeatLine(Record):
    """pass@k (`any_of`) and pass^k (`all_of`) over the `tasks` of `all_tasks` with at least k graded repeats."""

    k: int
    any_of: float | None
    all_of: float | None
    tasks: int
    all_tasks: int


class TippingLine(Record):
    """What of A's unresolved must pass for a tie, if B's pass at `b_rate`; `passes_to_lead` null: none suffices."""

    b_rate: float
    rate: float | None
    passes: float
    passes_to_lead: int | None
    unresolved: int
    feasible: bool
    ahead: str


class BoundsReport(Record):
    """What is known of one run, and of the difference to another where one is given."""

    a: SideLine
    strata: tuple[StratumLine, ...]
    repeats: tuple[RepeatLine, ...]
    b: SideLine | None = None
    difference: Bounds | None = None
    tipping: tuple[TippingLine, ...] = ()  # empty where nothing is unresolved
    notes: tuple[str, ...] = ()


class PairedLine(Record):
    """The paired table of A and B, with the exact test and Newcombe's interval for A − B. `verdict` is A's."""

    only_a: int
    only_b: int
    both: int
    neither: int
    missing: int
    net: float
    churn: float
    p: float
    mid_p: float
    interval: Bounds
    verdict: Literal["better", "worse", "undecided"]
    because: str
    more_pairs: int | None


class CostLine(Record):
    """Mean cost of an episode on the common tasks, all attempts included; the frontier; the break-even price of one
    whole unit of accuracy. `unverified`: an interval crosses zero, so the choice depends on what is not verified."""

    cost_a_usd: float | None
    cost_b_usd: float | None
    at_least_a_usd: float
    at_least_b_usd: float
    standing_a: Standing
    standing_b: Standing
    break_even: float | None
    break_even_bounds: Bounds | None
    unverified: bool
    reading: str


class ComparisonReport(Record):
    """A − B over common cells. `interval` is by a bootstrap over tasks at `level`, null for a single task;
    `identified` bounds what missing grades may do. `reversals`: of models both sides have, pairs whose order differs,
    of how many. `paired` is null with repeats."""

    a: str
    b: str
    weights: str
    difference: float
    rate_a: float
    rate_b: float
    level: float
    interval: Bounds | None
    share_above: float | None
    identified: Bounds
    tasks: int
    cells: int
    episodes_a: int
    episodes_b: int
    only_a: int
    only_b: int
    ungraded: int
    paired: PairedLine | None
    strata: tuple[StratumLine, ...]
    reversals: tuple[int, int] | None
    costs: CostLine
    notes: tuple[str, ...]


class BoardLine(Record):
    """A run of a board."""

    run: str
    agent: str
    rate: float | None
    coverage: float
    bounds: Bounds


class BoardPair(Record):
    """Two runs told apart after Holm's adjustment; `surely`: missing grades cannot turn them."""

    better: str
    worse: str
    difference: float
    common: int
    p: float
    holm: float
    false_discovery: float
    surely: bool


class BoardReport(Record):
    """Runs from best to worst, and the pairs that are apart at `alpha` over all `tested` of `pairs`.

    `reversed` of `reversal_pairs` change order between two readings of the same evidence: passes over graded tasks, and
    over all tasks with missing grades as fails; ties entered and left are counted apart.
    """

    runs: tuple[BoardLine, ...]
    tasks: int
    pairs: int
    tested: int
    apart: tuple[BoardPair, ...]
    by_false_discovery: int
    alpha: float
    reversed: int
    ties_entered: int
    ties_left: int
    reversal_pairs: int


def bounds_text(report: BoundsReport) -> str:
    """The bounds first, then what they rest on."""
    rows = _side_rows(report.a, "A" if report.b is not None else "run")
    if report.b is not None and report.difference is not None:
        rows += _side_rows(report.b, "B")
        crossing = report.difference[0] <= 0 <= report.difference[1]
        says = "crosses zero: scores and coverage do not say which is better" if crossing else "does not cross zero"
        rows.append(("A − B", f"{_points(report.difference)}, {says}"))
        rows += [("tipping", _tipping(line)) for line in report.tipping]
    for line in report.repeats:
        values = f"pass@{line.k} {_share(line.any_of)}, pass^{line.k} {_share(line.all_of)}"
        rows.append((f"k = {line.k}", f"{values}, over {line.tasks} of {line.all_tasks} tasks"))
    worst = [line for line in report.strata if line.graded < line.planned]
    for stratum in worst[:MOST_LINES]:
        covered = f"{stratum.graded} of {stratum.planned} graded, {_range(stratum.bounds)}"
        rows.append(("coverage", f"{one_line(stratum.stratum)}: {covered}"))
    rows += [("note", note) for note in report.notes]
    return _table(rows)


def comparison_text(report: ComparisonReport) -> str:
    """Difference, what may move it, the paired test, and costs."""
    rows = [
        ("A", f"{_share(report.rate_a)}  {one_line(report.a)}"),
        ("B", f"{_share(report.rate_b)}  {one_line(report.b)}"),
        (
            "A − B",
            f"{_signed(report.difference)}, weights {report.weights}, {report.tasks} tasks, {report.cells} cells",
        ),
    ]
    if report.interval is not None:
        rows.append(("interval", f"{_points(report.interval)} at {100 * report.level:g} %, by resampling tasks"))
    rows.append(("bounds", f"{_points(report.identified)} whatever the missing grades are"))
    if report.paired is not None:
        rows += _paired_rows(report.paired)
    if report.reversals is not None:
        rows.append(("models", f"{report.reversals[0]} of {report.reversals[1]} pairs change order between A and B"))
    for line in report.strata:
        rows.append(("", f"{one_line(line.stratum)}: {line.graded} of {line.planned} graded, {_range(line.bounds)}"))
    rows += _cost_rows(report.costs)
    rows += [("note", note) for note in report.notes]
    return _table(rows)


def board_text(report: BoardReport) -> str:
    """The runs, then which of all pairs can be told apart."""
    lines = [f"{'rate':>8} {'graded':>8}  {'bounds':17}  run"]
    for line in report.runs:
        covered = f"{100 * line.coverage:.0f} %"
        name = f"{line.run}  ({one_line(line.agent)})"
        lines.append(f"{_share(line.rate):>8} {covered:>8}  {_range(line.bounds):17}  {name}")
    found = f"{len(report.apart)} of {report.pairs} pairs are apart (Holm, α = {report.alpha:g})"
    lines += ["", f"{found}; {report.by_false_discovery} by false discovery rate"]
    for pair in report.apart[:MOST_LINES]:
        sure = "" if pair.surely else "; missing grades could turn it"
        by = f"by {_signed(pair.difference)} on {pair.common} tasks, p {pair.holm:.3g}"
        lines.append(f"  {pair.better} over {pair.worse} {by}{sure}")
    if len(report.apart) > MOST_LINES:
        lines.append(f"  … and {len(report.apart) - MOST_LINES} more (--json has all)")
    swapped = f"{report.reversed} of {report.reversal_pairs} pairs change order when missing grades count as fails"
    lines.append(f"{swapped}; ties: {report.ties_entered} entered, {report.ties_left} left")
    return "\n".join(lines)


def _side_rows(side: SideLine, name: str) -> list[tuple[str, str]]:
    rows = [
        (name, f"{side.run}  ({one_line(side.agent)})"),
        ("bounds", f"{_range(side.bounds)} of {side.planned} planned, whatever the missing grades are"),
        ("graded", f"{side.passed} passed of {side.graded} graded: {_share(side.rate)}"),
    ]
    if side.graded:
        rows[-1] = (rows[-1][0], f"{rows[-1][1]}, 95 % interval {_range(side.wilson)} (Wilson)")
    if side.without:
        reasons = sorted(side.without.items(), key=lambda pair: (-pair[1], pair[0]))
        rows.append(("no grade", ", ".join(f"{count} {why}" for why, count in reasons)))
    return rows


def _tipping(line: TippingLine) -> str:
    given = f"if {100 * line.b_rate:g} % of B's unresolved pass, "
    if line.ahead == "tie":
        return given + "the two are equal"
    if not line.feasible:
        return given + f"{line.ahead.upper()} is ahead whatever A's unresolved do"
    more = "" if line.passes_to_lead is None else f"; A leads from {line.passes_to_lead}"
    return given + f"the two tie at {line.passes:g} of A's {line.unresolved}{more}"


def _paired_rows(paired: PairedLine) -> list[tuple[str, str]]:
    split = f"{paired.only_a} only A, {paired.only_b} only B, {paired.both} both, {paired.neither} neither"
    more = "" if paired.more_pairs is None else f"; about {paired.more_pairs} more pairs at these rates would decide"
    verdict = {"better": "A IS BETTER", "worse": "B IS BETTER", "undecided": "UNDECIDED"}[paired.verdict]
    return [
        ("pairs", f"{split}; churn {_share(paired.churn)}"),
        ("test", f"exact McNemar p {paired.p:.3g} (mid-p {paired.mid_p:.3g}), {_points(paired.interval)} (Newcombe)"),
        ("verdict", f"{verdict}: {paired.because}{more}"),
    ]


def _cost_rows(costs: CostLine) -> list[tuple[str, str]]:
    sides = ((costs.cost_a_usd, costs.at_least_a_usd), (costs.cost_b_usd, costs.at_least_b_usd))
    a, b = (f"${known:.4g}" if known is not None else f"unknown, at least ${least:.4g}" for known, least in sides)
    rows = [("cost", f"A {a}, B {b} an episode; frontier: A {costs.standing_a}, B {costs.standing_b}")]
    if costs.break_even is not None:
        between = "" if costs.break_even_bounds is None else f", between {_plain(costs.break_even_bounds)}"
        rows.append(("break-even", f"{costs.break_even:.4g} of pass rate per USD{between}: {costs.reading}"))
    else:
        rows.append(("choice", costs.reading))
    return rows


def _table(rows: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:10} {text}" for name, text in rows)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} pp"


def _range(bounds: Bounds) -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f} %"


def _points(bounds: Bounds) -> str:
    return f"{100 * bounds[0]:+.1f} to {100 * bounds[1]:+.1f} pp"


def _plain(bounds: Bounds) -> str:
    return f"{bounds[0]:.4g} and {bounds[1]:.4g}"
