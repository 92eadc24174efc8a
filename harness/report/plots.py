"""Plots, for those who have matplotlib (the extra `plot`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.records.errors import ConfigError
from harness.report.studies import PolicyLine, PolicyStudy

_KINDS = frozenset({".png", ".svg", ".pdf"})


def require_plots(file: Path) -> None:
    """Before anything is computed: raises ConfigError where no plot can be made, or not in this form."""
    if file.suffix.lower() not in _KINDS:
        raise ConfigError(f"no plot can be written as {file.suffix or 'that'}", place=str(file), remedy="use .png")
    if not file.absolute().parent.is_dir():
        raise ConfigError("there is no such folder", place=str(file.parent), remedy="make it first")
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError as missing:
        raise ConfigError("plots need matplotlib", remedy="pip install 'assay[plot]'") from missing


def plot_study(study: PolicyStudy, file: Path) -> None:
    """Error by tasks and by cost, and coverage by tasks, one line per policy, into `file`."""
    from matplotlib.figure import Figure

    costed = any(line.cost_usd is not None for line in study.lines)
    figure = Figure(figsize=(4.6 * (3 if costed else 2), 3.6), layout="constrained")
    axes = figure.subplots(1, 3 if costed else 2, squeeze=False)[0]
    by_policy: dict[str, list[PolicyLine]] = {}
    for line in study.lines:
        by_policy.setdefault(line.policy, []).append(line)
    for policy, lines in by_policy.items():
        tasks = [line.tasks for line in lines]
        [drawn] = axes[0].plot(tasks, [line.error for line in lines], marker=".", label=policy)
        spans = [line.error_interval or (line.error, line.error) for line in lines]
        lower, upper = zip(*spans, strict=True)
        axes[0].fill_between(tasks, lower, upper, color=drawn.get_color(), alpha=0.12, linewidth=0)
        axes[1].plot(tasks, [100 * line.coverage for line in lines], marker=".", color=drawn.get_color())
        known = [line for line in lines if line.cost_usd is not None]
        if costed and known:
            cost, error = [line.cost_usd for line in known], [line.error for line in known]
            axes[2].plot(cost, error, marker=".", color=drawn.get_color())
    _label(axes[0], "tasks", "mean absolute error, pp")
    axes[0].legend()
    axes[1].axhline(100 * study.level, color="0.5", linestyle=":", linewidth=1)
    _label(axes[1], "tasks", f"true rate inside the {100 * study.level:g} % interval, %", top=101)
    if costed:
        _label(axes[2], "cost per run, USD", "mean absolute error, pp")
    figure.suptitle(f"{study.runs} runs of {study.agents} agents on {study.items} tasks; estimator {study.estimator}")
    figure.savefig(file, dpi=150)


def _label(axis: Any, x: str, y: str, top: float | None = None) -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_ylim(bottom=0, top=top)
    axis.set_xlim(left=0)
    axis.grid(alpha=0.25)
