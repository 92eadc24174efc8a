"""What policies would have cost and given: the record, and the record as a table."""

from __future__ import annotations

from harness.records.base import Record


class PolicyLine(Record):
    """One policy at one number of tasks, over all runs; errors and widths in percentage points.

    `error` is the mean absolute error of the full pass rate, `error_interval` its bootstrap 95 % interval over runs
    (null for a single run), `bias` the mean error, `width` the mean width of the interval that the share `coverage`
    of the true rates lie in. `cost_usd` and `seconds` are what the chosen tasks took, per run, `cost_share` and
    `seconds_share` that as a share of the whole suite; null where the history does not say.
    """

    policy: str
    tasks: int
    error: float
    error_interval: tuple[float, float] | None
    bias: float
    coverage: float
    width: float
    cost_usd: float | None
    cost_share: float | None
    seconds: float | None
    seconds_share: float | None


class PolicyStudy(Record):
    """`lines` by policy, then by number of tasks; `runs` of `agents` were replayed, `items` is the suite's size."""

    lines: tuple[PolicyLine, ...]
    runs: int
    agents: int
    items: int
    level: float
    estimator: str
    notes: tuple[str, ...]


def study_text(study: PolicyStudy) -> str:
    """One line per policy and number of tasks."""
    width = max(6, *(len(line.policy) for line in study.lines))
    cost = any(line.cost_usd is not None for line in study.lines)
    time = any(line.seconds is not None for line in study.lines)
    title = f"{'policy':{width}} {'tasks':>6} {'error':>6} {'95 % of it':>14} {'bias':>6} {'width':>6} {'covers':>7}"
    rows = [
        f"{study.runs} runs of {study.agents} agents on {study.items} tasks; estimator {study.estimator};"
        f" error in percentage points of the full pass rate, {100 * study.level:g} % intervals",
        title + (f" {'USD':>9} {'of all':>6}" if cost else "") + (f" {'seconds':>9} {'of all':>6}" if time else ""),
    ]
    for line in study.lines:
        span = "" if line.error_interval is None else f"[{line.error_interval[0]:.2f}, {line.error_interval[1]:.2f}]"
        told = f"{line.policy:{width}} {line.tasks:6d} {line.error:6.2f} {span:>14} {line.bias:+6.2f}"
        told += f" {line.width:6.1f} {100 * line.coverage:5.0f} %"
        told += _amount(line.cost_usd, line.cost_share, 2) if cost else ""
        rows.append(told + (_amount(line.seconds, line.seconds_share, 0) if time else ""))
    return "\n".join((*rows, *(f"note: {note}" for note in study.notes)))


def _amount(value: float | None, share: float | None, digits: int) -> str:
    if value is None or share is None:
        return f" {'?':>9} {'?':>6}"
    return f" {value:9.{digits}f} {100 * share:4.0f} %"
