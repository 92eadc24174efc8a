"""The cross table: the same episodes in every (grader, data, mode) cell, and what moved between them. Pure.

Means are over the episodes that every computed cell has a verdict for, and over each cell's own, with both
denominators. A cell without any verdict stays empty, with the reason, and takes nothing from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np

from harness.records.cross import Attribution, Cell, CellLine, CellName, CrossEpisode, CrossTable
from harness.records.errors import AssayError
from harness.replay.effects import effects_of, mean_on, reversals_of, transition_of, values_of
from harness.stats import valid_share
from harness.stats.arrays import BoolArray

RECORDED = "as recorded"


class CrossFault(AssayError):
    """Cells and episodes that do not fit each other."""


UNREAD = "not read"


def cross(
    episodes: Sequence[CrossEpisode], cells: Sequence[Cell], notes: Sequence[str] = (), unread: int = 0
) -> CrossTable:
    """The table of the cells, which must be every combination of their graders, data and modes; the first is the one
    that others are compared with. What was there and could not be read, `unread` parts, is planned in every cell.
    Raises CrossFault when a cell is missing or speaks of other episodes."""
    by_name = {cell.name: cell for cell in cells}
    graders, data, modes = (
        tuple(dict.fromkeys(getattr(cell.name, axis) for cell in cells)) for axis in ("grader", "data", "mode")
    )
    _check(episodes, cells, by_name, (graders, data, modes))
    common = _common(cells, len(episodes))
    first, others = cells[0], cells[1:]
    agents = tuple(dict.fromkeys(episode.agent for episode in episodes))
    computed = [cell for cell in others if _known(cell).any()]
    return CrossTable(
        episodes=len(episodes),
        tasks=len({episode.task for episode in episodes}),
        agents=agents,
        common=int(common.sum()),
        cells=tuple(_line(cell, common, unread) for cell in cells),
        transitions=tuple(
            transition_of(episodes, (str(first.name), first.outcomes), (str(cell.name), cell.outcomes))
            for cell in computed
        ),
        effects=tuple(
            effects_of(by_name, (graders[0], grader), (data[0], version), mode)
            for mode, grader, version in product(modes, graders[1:], data[1:])
        ),
        reversals=tuple(reversals_of(episodes, first, cell) for cell in computed) if len(agents) > 1 else (),
        attribution=attribution(episodes, first),
        notes=tuple(notes),
        unread=unread,
    )


def attribution(episodes: Sequence[CrossEpisode], baseline: Cell) -> Attribution | None:
    """How far the baseline cell reproduces the recorded outcomes; None when none was recorded."""
    recorded = [episode.recorded for episode in episodes]
    if not any(outcome.graded for outcome in recorded):
        return None
    line = transition_of(episodes, (RECORDED, recorded), (str(baseline.name), baseline.outcomes))
    moved = line.n01 + line.n10
    if line.n == 0:
        sentence = "the baseline has no verdict on a recorded one: nothing can be attributed to a rule"
    elif moved:
        sentence = (
            f"{moved} of {line.n} recorded outcomes moved before any rule or data did: these are the format's, the"
            " replay's or the wrong baseline's, and in no rule's column"
        )
    else:
        sentence = (
            f"the baseline reproduces all {line.n} recorded outcomes that it can: what moves after it is the rule's"
        )
    return Attribution(baseline=str(baseline.name), pipeline=line, clean=line.n > 0 and not moved, sentence=sentence)


def _check(
    episodes: Sequence[CrossEpisode],
    cells: Sequence[Cell],
    by_name: dict[CellName, Cell],
    axes: tuple[tuple[str, ...], ...],
) -> None:
    if not cells or not episodes:
        raise CrossFault("there is nothing to cross", remedy="name at least one grader and an archive with episodes")
    expected = [CellName(grader=grader, data=data, mode=mode) for grader, data, mode in product(*axes)]
    lacking = [str(name) for name in expected if name not in by_name]
    if lacking or len(by_name) != len(cells):
        raise CrossFault(f"cells are missing or doubled: {', '.join(lacking) or 'doubled'}")
    for cell in cells:
        if not len(cell.outcomes) == len(cell.reasons) == len(episodes):
            raise CrossFault(f"{len(cell.outcomes)} outcomes for {len(episodes)} episodes", place=str(cell.name))


def _known(cell: Cell) -> BoolArray:
    return ~np.isnan(values_of(cell.outcomes))


def _common(cells: Sequence[Cell], episodes: int) -> BoolArray:
    """Episodes with a verdict in every cell that has any."""
    computed = [known for cell in cells if (known := _known(cell)).any()]
    return np.logical_and.reduce(computed) if computed else np.zeros(episodes, dtype=np.bool_)


def _line(cell: Cell, common: BoolArray, unread: int) -> CellLine:
    values, known = values_of(cell.outcomes), _known(cell)
    share = valid_share(len(cell.outcomes) + unread, int(known.sum()), int(np.nansum(values)))
    without = Counter(reason or "no reason" for reason, valid in zip(cell.reasons, known, strict=True) if not valid)
    without.update({UNREAD: unread} if unread else {})
    top = ", ".join(f"{count} {reason}" for reason, count in without.most_common(3))
    return CellLine(
        cell=cell.name,
        code=cell.code,
        data_digest=cell.data_digest,
        rule=cell.rule,
        planned=share.planned,
        valid=share.valid,
        passed=share.passed,
        rate=share.rate,
        bounds=(share.bounds.lower, share.bounds.upper),
        common_rate=mean_on(values, common) if share.valid else None,
        without=dict(without.most_common()),
        absent=None if share.valid else f"no episode has a verdict: {top}",
    )
