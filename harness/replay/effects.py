"""What a change of grader and of task data each did to the mean, both orders, on the same episodes (SOURCES S2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.records.cross import Cell, CellName, EffectLine, ReversalLine, TransitionLine
from harness.records.cross import CrossEpisode as Episode
from harness.records.cross import TaskMoves as Moves
from harness.records.vocabulary import Outcome
from harness.stats import reversals, transitions, two_way_effects
from harness.stats.arrays import BoolArray, FloatArray

VALUES = {Outcome.PASSED: 1.0, Outcome.FAILED: 0.0}


def values_of(outcomes: Sequence[Outcome]) -> FloatArray:
    """1 for a pass, 0 for a fail, NaN for anything else; shape (episodes,)."""
    return np.array([VALUES.get(outcome, np.nan) for outcome in outcomes], dtype=np.float64)


def mean_on(values: FloatArray, chosen: BoolArray) -> float | None:
    """The mean of the chosen episodes; None when there is none."""
    return float(values[chosen].mean()) if chosen.any() else None


def effects_of(
    cells: Mapping[CellName, Cell], graders: tuple[str, str], data: tuple[str, str], mode: str
) -> EffectLine:
    """The change from (old grader, old data) to (new, new), split in both orders."""
    names = [
        CellName(grader=graders[which[0]], data=data[which[1]], mode=mode) for which in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    values = [values_of(cells[name].outcomes) for name in names]
    known = [~np.isnan(one) for one in values]
    computed = [index for index in range(4) if known[index].any()]
    common = np.logical_and.reduce([known[index] for index in computed]) if computed else known[0]
    means = [mean_on(values[index], common) if index in computed else None for index in range(4)]
    found = two_way_effects(*means)
    lacking = [f"{names[index]}: no verdict" for index in range(4) if index not in computed]
    if computed and not common.any():
        lacking.append("the cells have no episode in common that has a verdict in each")
    return EffectLine(
        graders=graders,
        data=data,
        mode=mode,
        n=int(common.sum()),
        means=(means[0], means[1], means[2], means[3]),
        total=found.total,
        grader_first=found.grader_first,
        data_first=(found.data_first[1], found.data_first[0]),  # there it is the grader's share first
        interaction=found.interaction,
        missing="; ".join(lacking) or None,
    )


def transition_of(
    episodes: Sequence[Episode], old: tuple[str, Sequence[Outcome]], new: tuple[str, Sequence[Outcome]]
) -> TransitionLine:
    """Old against new, each a name and the outcomes of the episodes, with the tasks that moved."""
    before, after = values_of(old[1]), values_of(new[1])
    whole = transitions(before, after)
    moved: dict[str, list[int]] = {}
    for index, episode in enumerate(episodes):
        moved.setdefault(episode.task, []).append(index)
    tasks = []
    for task, indices in moved.items():
        own = transitions(before[indices], after[indices])
        if own.changed:
            tasks.append(Moves(task=task, n00=own.n00, n01=own.n01, n10=own.n10, n11=own.n11))
    return TransitionLine(
        old=old[0],
        new=new[0],
        n=whole.n,
        n00=whole.n00,
        n01=whole.n01,
        n10=whole.n10,
        n11=whole.n11,
        missing=whole.missing,
        net=whole.net,
        churn=whole.churn,
        tasks=tuple(tasks),
    )


def reversals_of(episodes: Sequence[Episode], old: Cell, new: Cell) -> ReversalLine:
    """Pairs of agents that change order between two cells, each mean over episodes with a verdict in both."""
    before, after = values_of(old.outcomes), values_of(new.outcomes)
    both = ~(np.isnan(before) | np.isnan(after))
    agents = np.array([episode.agent for episode in episodes], dtype=object)
    names = list(dict.fromkeys(episode.agent for episode in episodes))
    means = np.full((2, len(names)), np.nan)
    for position, agent in enumerate(names):
        own = both & (agents == agent)
        if own.any():
            means[:, position] = before[own].mean(), after[own].mean()
    found = reversals(means[0], means[1])
    return ReversalLine(
        old=str(old.name),
        new=str(new.name),
        agents=found.units,
        pairs=found.pairs,
        reversed=found.reversed,
        ties_entered=found.ties_entered,
        ties_left=found.ties_left,
        ties_kept=found.ties_kept,
        left_out=found.left_out,
    )
