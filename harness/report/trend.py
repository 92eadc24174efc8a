"""The trend of what is achievable: in a terminal, and as PNG or SVG. No line is drawn across a break of the series."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from harness.records.audit import CAUSE_TEXT, Cause
from harness.records.audit_views import AuditStatus, ScorePoint, TrendPoint

BAR = 40
P = TypeVar("P", TrendPoint, ScorePoint)


def segments(points: Sequence[P]) -> list[list[P]]:
    """The points of each series by themselves."""
    found: dict[int, list[P]] = {}
    for point in points:
        found.setdefault(point.series, []).append(point)
    return [found[number] for number in sorted(found)]


def trend_text(status: AuditStatus, width: int = 110) -> str:
    """A bar per cycle, achievable against unavailable by reason, with a rule at each break; then the runs' scores."""
    console = Console(width=width, no_color=True, highlight=False)
    with console.capture() as capture:
        for number, points in enumerate(segments(status.trend)):
            if number:
                console.rule("the series broke: do not compare across", characters="─")
            console.print(_bars(points))
        for number, runs in enumerate(segments(status.scores)):
            if number:
                console.rule("the series broke: do not compare across", characters="─")
            console.print(_runs(runs))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _bars(points: Sequence[TrendPoint]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("cycle of (UTC)", "achievable", "", "unavailable"):
        table.add_column(name, justify="right" if name == "achievable" else "left", no_wrap=name != "unavailable")
    for point in points:
        full = int(BAR * point.achievable / point.tasks) if point.tasks else 0
        why = ", ".join(f"{count} {CAUSE_TEXT[cause]}" for cause, count in point.causes.items())
        bar = "█" * full + "░" * (BAR - full)
        table.add_row(point.at[:16].replace("T", " "), f"{point.achievable}/{point.tasks}", bar, why or "none")
    return table


def _runs(points: Sequence[ScorePoint]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("run of (UTC)", "agent", "of all", "of the achievable"):
        table.add_column(name, justify="left" if name in ("run of (UTC)", "agent") else "right")
    for point in points:
        achievable = "not measured" if point.achievable is None else f"{100 * point.achievable:.1f} %"
        table.add_row(point.at[:16].replace("T", " "), point.agent, f"{100 * point.raw:.1f} %", achievable)
    return table


def plot_trend(status: AuditStatus, file: Path) -> None:
    """Achievable and unavailable by reason over time, and scores on both denominators, into `file`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    counts, rates = figure.subplots(2, 1, sharex=True)
    causes = sorted({cause for point in status.trend for cause in point.causes})
    colours = {cause: f"C{number + 1}" for number, cause in enumerate(causes)}
    for number, points in enumerate(segments(status.trend)):
        days = [datetime.fromisoformat(point.at) for point in points]
        label = "achievable" if number == 0 else None
        counts.plot(days, [point.achievable for point in points], marker="o", color="C0", label=label)
        for cause in causes:
            told = CAUSE_TEXT[Cause(cause)] if number == 0 else None
            found = [point.causes.get(cause, 0) for point in points]
            counts.plot(days, found, marker=".", linestyle="--", color=colours[cause], label=told)
    for number, runs in enumerate(segments(status.scores)):
        days = [datetime.fromisoformat(point.at) for point in runs]
        first = number == 0
        told = "of all tasks" if first else None
        rates.plot(days, [100 * p.raw for p in runs], "o", color="0.5", mfc="none", ms=10, label=told)
        known = [point for point in runs if point.achievable is not None]
        rates.plot(
            [datetime.fromisoformat(point.at) for point in known],
            [100 * (point.achievable or 0.0) for point in known],
            "o",
            color="C0",
            label="of the achievable" if first else None,
        )
    for one in status.breaks:
        for axis in (counts, rates):
            axis.axvline(datetime.fromisoformat(one.at), color="C3", linestyle=":", linewidth=1.2)
    counts.yaxis.get_major_locator().set_params(integer=True)
    counts.set_ylim(bottom=0)
    counts.set_ylabel("tasks")
    rates.set_ylabel("score, %")
    for axis in (counts, rates):
        axis.grid(alpha=0.25)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.suptitle(f"{status.suite}: what is achievable (dotted: the series breaks)")
    figure.autofmt_xdate()
    figure.savefig(file, dpi=150)
