"""Two causes of one change: grader version × task-data version on the same episodes.

With s(g, d) the mean score under grader g and task data d, both taken old or new:

    grader first:  [s(new, old) − s(old, old),  s(new, new) − s(new, old)]
    data first:    [s(old, new) − s(old, old),  s(new, new) − s(old, new)]
    interaction:   s(new, new) − s(new, old) − s(old, new) + s(old, old)

Example: 0.40, 0.46 (new grader), 0.37 (new data), 0.49 give (0.06, 0.03), (−0.03, 0.12) and 0.06.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effects:
    """Each order of the two changes as (grader's share, data's share). None: a cell that it needs is missing."""

    total: float | None
    grader_first: tuple[float | None, float | None]
    data_first: tuple[float | None, float | None]
    interaction: float | None


def two_way_effects(
    old_old: float | None, new_grader: float | None, new_data: float | None, new_new: float | None
) -> Effects:
    """Split the change from (old grader, old data) to (new, new). A cell that could not be computed is None, and so
    is whatever needs it: no mean over other episodes stands in for it."""
    grader = _less(new_grader, old_old), _less(new_new, new_data)
    data = _less(new_data, old_old), _less(new_new, new_grader)
    return Effects(
        total=_less(new_new, old_old),
        grader_first=(grader[0], data[1]),
        data_first=(grader[1], data[0]),
        interaction=_less(grader[1], grader[0]),
    )


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
