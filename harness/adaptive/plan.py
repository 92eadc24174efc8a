"""What a back-test found, as plain records that travel in a bank: how to test an agent, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """One way to test an agent: the `model` by its label, the `policy` (with its share, as `policy_named` reads it),
    and the estimator's `model_error`.
    """

    model: str
    policy: str
    model_error: float


@dataclass(frozen=True)
class Row:
    """A plan at one number of tasks: mean absolute error `mae` and that of random sampling, fractions of 1, over the
    tested runs; `ratio` of the two and its standard error over agents; `widening` of the standard error.
    """

    plan: Plan
    tasks: int
    mae: float
    random_mae: float
    ratio: float
    ratio_se: float
    widening: float


@dataclass(frozen=True)
class Backtest:
    """The table, and what won: `chosen` has one row per checkpoint, all of one model.

    `agents` and `runs` say how many were tested; `notes` what the reader must know.
    """

    rows: tuple[Row, ...]
    chosen: tuple[Row, ...]
    agents: int
    runs: int
    notes: tuple[str, ...] = ()

    def at(self, tasks: int) -> Row:
        """The chosen row for a run of so many tasks: that of the nearest checkpoint, by ratio."""
        return min(self.chosen, key=lambda row: abs(math.log(row.tasks / max(tasks, 1))))

    def as_dict(self) -> dict[str, Any]:
        """Plain, JSON-able values; `from_dict` gives back an equal record."""
        plain = asdict(self)
        return {**plain, "rows": list(plain["rows"]), "chosen": list(plain["chosen"]), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Backtest:
        """The record of `as_dict`; raises KeyError or TypeError on anything else."""

        def rows(values: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
            return tuple(Row(**{**value, "plan": Plan(**value["plan"])}) for value in values)

        return cls(
            rows=rows(plain["rows"]),
            chosen=rows(plain["chosen"]),
            agents=plain["agents"],
            runs=plain["runs"],
            notes=tuple(plain["notes"]),
        )

    @property
    def widening(self) -> tuple[tuple[int, float], ...]:
        """(tasks, factor) of the chosen rows, by tasks: what `EngineSettings.widening` takes."""
        return tuple((row.tasks, row.widening) for row in self.chosen)
