"""An estimate taken apart: what was executed, what was predicted, what does not fit, what one more task would bring."""

from __future__ import annotations

from harness.records.base import Record
from harness.report.words import one_line

MOST_SURPRISES = 5
SURPRISING = 2.0  # standard deviations


class SurpriseLine(Record):
    """An outcome the bank did not expect: P(pass) expected, the rate that came, the residual in standard deviations."""

    task: str
    expected: float
    rate: float
    residual: float


class EstimateReport(Record):
    """The pass rate that a full run would show; rates are shares, errors too.

    `executed` of `tasks` have an outcome and `passed_share` of all tasks is passes among them; `predicted` have none
    and `predicted_share` of all tasks is expected of them: the two shares add up to `value`. `ungraded` ran without a
    grade and are among the predicted, `unavailable` are not counted. `fit` is the person fit l_z, null where it cannot
    be told; `misfits` says that it is too low to trust the model. `next_task` is what the policy would run next and
    `error_after` the standard error expected after it; null when nothing is left. `ended` is why choosing stopped.
    """

    run: str
    agent: str
    suite: str
    adaptive: bool
    value: float
    lower: float
    upper: float
    level: float
    standard_error: float
    method: str
    tasks: int
    executed: int
    passed_share: float
    predicted: int
    predicted_share: float
    ungraded: int
    unavailable: int
    bank: str
    bank_method: str
    ability: tuple[float, ...]
    ability_sd: tuple[float, ...]
    fit: float | None
    misfits: bool
    surprises: tuple[SurpriseLine, ...]
    next_task: str | None
    error_after: float | None
    ended: str | None
    notes: tuple[str, ...]


def estimate_text(report: EstimateReport) -> str:
    """One row per question."""
    percent = f"{100 * report.level:g} %"
    where = f"{100 * report.passed_share:.1f} from {report.executed} tasks executed"
    where += f" + {100 * report.predicted_share:.1f} predicted for {report.predicted}"
    ability = ", ".join(f"{at:+.2f} ± {sd:.2f}" for at, sd in zip(report.ability, report.ability_sd, strict=True))
    rows = [
        ("run", f"{report.run}  ({one_line(report.agent)} on {one_line(report.suite)}, {report.tasks} tasks)"),
        (
            "estimate",
            f"{100 * report.value:.1f} %, {percent} interval [{100 * report.lower:.1f}, {100 * report.upper:.1f}],"
            f" standard error {100 * report.standard_error:.2f} pp; {report.method}",
        ),
        ("of that", where),
        ("bank", f"{report.bank[:12]}, {report.bank_method}; ability {ability}"),
        ("fit", _fit(report)),
        ("next", _next(report)),
    ]
    if report.ungraded or report.unavailable:
        rows.insert(
            3, ("without", f"{report.ungraded} ungraded (predicted), {report.unavailable} unavailable (left out)")
        )
    if report.ended is not None:
        rows.append(("ended", report.ended))
    rows += [("note", one_line(note)) for note in report.notes]
    return "\n".join(f"{name:9} {text}" for name, text in rows)


def _fit(report: EstimateReport) -> str:
    if report.fit is None:
        return "not to be told yet"
    told = f"l_z {report.fit:+.1f}"
    told += ": THE OUTCOMES CONTRADICT THE BANK, do not trust the prediction" if report.misfits else ""
    shown = [
        f"{one_line(line.task)} {'passed' if line.residual > 0 else 'failed'} at {100 * line.expected:.0f} %"
        for line in report.surprises[:MOST_SURPRISES]
        if abs(line.residual) >= SURPRISING
    ]
    return f"{told}; surprising: {', '.join(shown)}" if shown else told


def _next(report: EstimateReport) -> str:
    if report.next_task is None or report.error_after is None:
        return "nothing is left to run"
    gain = 100 * (report.standard_error - report.error_after)
    return (
        f"{one_line(report.next_task)}: standard error {100 * report.standard_error:.2f} to"
        f" {100 * report.error_after:.2f} pp expected (-{gain:.3f})"
    )
