"""How well a bank fits its history and how it did on past agents, as text."""

from __future__ import annotations

from harness.adaptive.fit_report import FitReport
from harness.adaptive.plan import Backtest
from harness.report.words import one_line

MOST_NAMED = 5


def fit_rows(report: FitReport) -> list[tuple[str, str]]:
    """The fit report as rows of name and text, what is bad first of all named."""
    rows = []
    if report.held_out_log_likelihood is not None and report.calibration_error is not None:
        rows.append(
            (
                "held out",
                f"{report.held_out_trials:.0f} trials: log-likelihood {report.held_out_log_likelihood:.4f} each,"
                f" predictions off by {100 * report.calibration_error:.1f} pp on average",
            )
        )
    if report.effective_runs < report.n_runs - 0.5:
        rows.append(("independent", f"the {report.n_runs} runs are worth {report.effective_runs:.1f} independent ones"))
    if report.misfits:
        named = ", ".join(f"{one_line(item.item)} ({item.outfit:.1f})" for item in report.misfits[:MOST_NAMED])
        rows.append(("misfit", f"{report.misfits_found} items scatter more than the model has it (outfit): {named}"))
    if report.pairs:
        named = ", ".join(
            f"{one_line(pair.items[0])} and {one_line(pair.items[1])} ({pair.correlation:+.2f})"
            for pair in report.pairs[:MOST_NAMED]
        )
        rows.append(("together", f"{report.pairs_found} pairs of items share what the model does not have: {named}"))
    if report.groups:
        named = ", ".join(f"{one_line(g.group)} ({g.correlation:+.2f})" for g in report.groups[:MOST_NAMED])
        rows.append(("groups", f"residual correlation within: {named}"))
    return rows + [("too thin", one_line(sentence)) for sentence in report.thin]


def curve_text(report: FitReport) -> str:
    """The calibration curve: of held-out trials by predicted probability, what was predicted and what came."""
    if not report.calibration:
        return "no trial was held out"
    lines = [f"{'predicted':>9} {'passed':>7} {'trials':>7}"]
    for one in report.calibration:
        lines.append(f"{100 * one.predicted:8.1f}% {100 * one.observed:6.1f}% {one.trials:7.0f}")
    return "\n".join(lines)


def backtest_text(table: Backtest) -> str:
    """What `--policy auto` would do, and how it did on past agents."""
    lines = [
        f"back-tested on {table.runs} runs of {table.agents} agents, each by a bank without it; error in percentage"
        " points, beside that of as many random tasks",
        f"{'tasks':>6} {'error':>6} {'random':>6} {'ratio':>13}  {'widen':>5}  policy (model, model error)",
    ]
    for row in table.chosen:
        ratio = f"{row.ratio:.2f} ± {row.ratio_se:.2f}"
        lines.append(
            f"{row.tasks:6d} {100 * row.mae:6.2f} {100 * row.random_mae:6.2f} {ratio:>13}  {row.widening:5.2f}"
            f"  {row.plan.policy} ({row.plan.model}, {100 * row.plan.model_error:g} pp)"
        )
    return "\n".join((*lines, *(f"note: {one_line(note)}" for note in table.notes)))
