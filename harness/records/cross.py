"""The same recorded episodes under several graders, task data and modes: one table, and what moved between its cells.

Rates and differences are shares. A cell that has no verdict at all is there with the reason, and in no mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.records.base import Record
from harness.records.vocabulary import Outcome

CROSS_SCHEMA = "assay-cross/1"


@dataclass(frozen=True, slots=True)
class CrossEpisode:
    """One recorded episode: `recorded` is the outcome that its archive or run has."""

    id: str
    task: str
    repeat: int
    agent: str
    recorded: Outcome = Outcome.UNGRADED


class CellName(Record):
    """A cell of the table. `data` is a task-data version by name."""

    grader: str  # id@version
    data: str
    mode: str

    def __str__(self) -> str:
        return f"{self.grader} on {self.data}, {self.mode}"


@dataclass(frozen=True)
class Cell:
    """What a cell says of each episode, in their order: an outcome, and why it is no pass or fail ("" where it is)."""

    name: CellName
    outcomes: tuple[Outcome, ...]
    reasons: tuple[str, ...]
    code: str = ""  # digest of the grader's source
    data_digest: str = ""
    rule: str = ""


class CellLine(Record):
    """With n planned, v valid, m valid and passed: `rate` is m/v, `bounds` [m/n, (m+n−v)/n].

    `common_rate` is the rate on the episodes that every computed cell has a verdict for. `absent`: why there is no
    verdict at all; null where there is one.
    """

    cell: CellName
    code: str
    data_digest: str
    rule: str
    planned: int
    valid: int
    passed: int
    rate: float | None
    bounds: tuple[float, float]
    common_rate: float | None
    without: dict[str, int]  # reason -> episodes without a verdict
    absent: str | None = None


class TaskMoves(Record):
    """A task whose outcomes moved: counts of old → new, 0 fail and 1 pass."""

    task: str
    n00: int
    n01: int
    n10: int
    n11: int


class TransitionLine(Record):
    """Old against new on the `n` episodes with both outcomes; `missing` lack one. `tasks`: those with a change."""

    old: str
    new: str
    n: int
    n00: int
    n01: int
    n10: int
    n11: int
    missing: int
    net: float | None
    churn: float | None
    tasks: tuple[TaskMoves, ...] = ()


class EffectLine(Record):
    """A change of grader and of data split into its parts, on the `n` episodes valid in all four cells.

    `grader_first` is the grader's share, then the data's; `data_first` the data's, then the grader's. `means` are of
    old/old, new grader, new data, new/new.
    """

    graders: tuple[str, str]
    data: tuple[str, str]
    mode: str
    n: int
    means: tuple[float | None, float | None, float | None, float | None]
    total: float | None
    grader_first: tuple[float | None, float | None]
    data_first: tuple[float | None, float | None]
    interaction: float | None
    missing: str | None = None  # which cell there is not, and why


class ReversalLine(Record):
    """Pairs of agents whose order turns between two cells, of `pairs`; ties entered, left and kept are apart.

    Each agent's mean is over its episodes that are valid in both cells; `left_out` agents have none.
    """

    old: str
    new: str
    agents: int
    pairs: int
    reversed: int
    ties_entered: int
    ties_left: int
    ties_kept: int
    left_out: int


class Attribution(Record):
    """What of the difference to the recorded outcomes is the pipeline's (format, replay, the rule's rebuilding) and
    what the rule's or its data's. `pipeline` compares the record with the first cell, which should reproduce it;
    whatever moves there is in no rule's column. `clean`: nothing moved there."""

    baseline: str
    pipeline: TransitionLine
    clean: bool
    sentence: str


class CrossTable(Record):
    """The whole table. The first grader, data and mode are what the others are compared with."""

    schema_name: str = CROSS_SCHEMA
    episodes: int
    tasks: int
    agents: tuple[str, ...]
    common: int  # episodes with a verdict in every cell that has any
    cells: tuple[CellLine, ...]
    transitions: tuple[TransitionLine, ...]
    effects: tuple[EffectLine, ...]
    reversals: tuple[ReversalLine, ...]
    attribution: Attribution | None
    notes: tuple[str, ...] = ()
    unread: int = 0  # planned episodes without a name: parts of the archives that could not be read
    at_least: bool = False  # an archive was cut off, and how much more it should hold cannot be known
    partial: bool = False  # a part of the archives could not be read
