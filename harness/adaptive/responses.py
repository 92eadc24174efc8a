"""A history of outcomes as counts: what calibration reads.

`trials[r, i]` graded attempts of item i in run r, of which `passes[r, i]` passed. A missing, ungraded or
unavailable cell has zero trials; it is never a zero score (CASES S09). Repeated trials of one item add up.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, frozen
from harness.adaptive.errors import ResponsesError


@dataclass(frozen=True, eq=False)
class Responses:
    """`passes` (R, N) and `trials` (R, N), whole numbers with 0 ≤ passes ≤ trials, for R named runs and N
    named items.

    `dates` is empty or one ISO date per run ("" where unknown). R = 0 is allowed, N = 0 is not.

    Raises
    ------
    ResponsesError
        On shapes that do not fit the ids, duplicate ids, counts that are not finite whole numbers, or passes
        beyond trials.
    """

    run_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    passes: FloatArray
    trials: FloatArray
    dates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_ids", tuple(self.run_ids))
        object.__setattr__(self, "item_ids", tuple(self.item_ids))
        object.__setattr__(self, "dates", tuple(self.dates))
        require_unique(self.run_ids, "run_ids")
        require_unique(self.item_ids, "item_ids")
        shape = (len(self.run_ids), len(self.item_ids))
        if shape[1] == 0:
            raise ResponsesError("no items", place="item_ids", remedy="Name at least one item")
        if self.dates and len(self.dates) != shape[0]:
            raise ResponsesError(
                f"{len(self.dates)} dates for {shape[0]} runs",
                place="dates",
                remedy="Give one per run, or none",
            )
        for name in ("passes", "trials"):
            counts = frozen(getattr(self, name))
            if counts.shape != shape:
                raise ResponsesError(
                    f"shape {counts.shape}, but there are {shape[0]} runs and {shape[1]} items",
                    place=name,
                    remedy="Give one row per run and one column per item",
                )
            if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.floor(counts)).all()):
                raise ResponsesError(
                    "counts must be finite, whole and not negative",
                    place=name,
                    remedy="Give a missing cell 0 trials and 0 passes, not NaN",
                )
            object.__setattr__(self, name, counts)
        beyond = np.argwhere(self.passes > self.trials)
        if beyond.size:
            run, item = self.run_ids[beyond[0][0]], self.item_ids[beyond[0][1]]
            raise ResponsesError(
                "more passes than trials",
                place=f"run {run!r}, item {item!r}",
                remedy="Count a pass as one trial as well",
            )

    @classmethod
    def from_cells(
        cls,
        cells: Iterable[tuple[str, str, bool | None]],
        item_ids: Sequence[str] | None = None,
        dates: dict[str, str] | None = None,
    ) -> Responses:
        """Add up flat rows `(run, item, outcome)`, where an outcome is True, False or None (no grade: no
        trial).

        Runs and items keep the order of their first appearance, unless `item_ids` fixes the items; a row for
        an item outside `item_ids` raises. A run or item that has only None still gets its row or column.
        """
        rows = list(cells)
        runs = {run: index for index, run in enumerate(dict.fromkeys(run for run, _, _ in rows))}
        known = item_ids if item_ids is not None else dict.fromkeys(item for _, item, _ in rows)
        items = {item: index for index, item in enumerate(known)}
        passes = np.zeros((len(runs), len(items)))
        trials = np.zeros_like(passes)
        for run, item, outcome in rows:
            if item not in items:
                raise ResponsesError(
                    "an outcome for an item that is not listed",
                    place=f"run {run!r}, item {item!r}",
                    remedy="Add the item to item_ids, or leave the row out",
                )
            if outcome is not None:
                trials[runs[run], items[item]] += 1
                passes[runs[run], items[item]] += bool(outcome)
        order = tuple(dates.get(run, "") for run in runs) if dates else ()
        return cls(tuple(runs), tuple(known), passes, trials, order)

    @property
    def sha256(self) -> str:
        """Digest of ids, dates and counts: two equal histories have equal digests."""
        digest = hashlib.sha256()
        digest_of_names(digest, self.run_ids, self.item_ids, self.dates)
        for counts in (self.passes, self.trials):
            digest.update(counts.astype("<f8").tobytes())
        return digest.hexdigest()

    @property
    def pass_rates(self) -> FloatArray:
        """Raw pass rate of each run over its own trials, (R,); NaN for a run without any."""
        trials = self.trials.sum(axis=1)
        rates = np.full(len(trials), np.nan)
        np.divide(self.passes.sum(axis=1), trials, out=rates, where=trials > 0)
        return rates


def digest_of_names(digest: hashlib._Hash, *lists: tuple[str, ...]) -> None:
    """Feed lists of names to `digest`, each with its length, so that no two histories run together."""
    for names in lists:
        digest.update(len(names).to_bytes(8, "little"))
        for name in names:
            encoded = name.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)


def require_unique(names: tuple[str, ...], place: str) -> None:
    """Raises ResponsesError naming one that appears twice."""
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ResponsesError(f"{twice!r} appears twice", place=place, remedy="Give every run and item one id")
