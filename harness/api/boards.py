"""Every pair of several stored runs at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness import stats
from harness.api.episodes import RunEpisodes, read_episodes
from harness.api.request import DEFAULT_STORE
from harness.api.stores import open_store
from harness.records.errors import ConfigError
from harness.report.comparisons import BoardLine, BoardPair, BoardReport


def compare_all(runs: Sequence[str], store: str | Path = DEFAULT_STORE, alpha: float = 0.05) -> BoardReport:
    """Every pair of several runs, on the tasks that both graded; p-values adjusted together. Without names: all runs.

    Of repeats the first counts. Raises StoreError, ConfigError.
    """
    with open_store(store) as opened:
        names = list(runs) or [row.run for row in opened.runs()]
        read = [read_episodes(opened, run) for run in names]
    return board_report(read, alpha)


def board_report(read: Sequence[RunEpisodes], alpha: float) -> BoardReport:
    """The board of runs already read."""
    tasks = sorted({(episode.task, episode.version) for run in read for episode in run.episodes})
    number = {task: at for at, task in enumerate(tasks)}
    table = np.full((len(read), len(tasks)), np.nan)
    for at, run in enumerate(read):
        for episode in reversed(run.episodes):  # of repeats, the first
            table[at, number[episode.task, episode.version]] = episode.value
    try:
        found = stats.board(table, 1 - alpha)
    except stats.StatsError as error:
        raise ConfigError(str(error), remedy="name at least two runs") from error
    swapped = stats.reversals(found.lower_rate, found.rate)
    lines = [
        BoardLine(
            run=read[at].row.run,
            agent=read[at].agent,
            rate=None if math.isnan(found.rate[at]) else float(found.rate[at]),
            coverage=float(found.coverage[at]),
            bounds=(float(found.lower_rate[at]), float(found.upper_rate[at])),
        )
        for at in found.order.tolist()
    ]
    apart = np.flatnonzero(found.holm <= alpha)
    order = apart[np.argsort(found.holm[apart], kind="stable")]
    pairs = [
        BoardPair(
            better=read[int(found.first[k] if found.difference[k] > 0 else found.second[k])].row.run,
            worse=read[int(found.second[k] if found.difference[k] > 0 else found.first[k])].row.run,
            difference=abs(float(found.difference[k])),
            common=int(found.common[k]),
            p=float(found.p[k]),
            holm=float(found.holm[k]),
            false_discovery=float(found.false_discovery[k]),
            surely=bool(found.surely_apart[k]),
        )
        for k in order.tolist()
    ]
    return BoardReport(
        runs=tuple(lines),
        tasks=len(tasks),
        pairs=int(found.first.size),
        tested=int((~np.isnan(found.p)).sum()),
        apart=tuple(pairs),
        by_false_discovery=int((found.false_discovery <= alpha).sum()),
        alpha=alpha,
        reversed=swapped.reversed,
        ties_entered=swapped.ties_entered,
        ties_left=swapped.ties_left,
        reversal_pairs=swapped.pairs,
    )
