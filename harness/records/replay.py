"""What a replay of a recorded episode found, and what graders of episodes read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.records.archive import Fault, Step
from harness.records.base import Record
from harness.records.vocabulary import Outcome


class Match(StrEnum):
    """A recorded answer or checkpoint beside the replayed one."""

    SAME = "same"  # byte for byte
    COSMETIC = "cosmetic"  # equal under a declared normalisation: number form, key order, timestamp format
    KEY = "key"  # they say different things
    UNCHECKED = "unchecked"  # nothing was recorded to compare with


class Invalid(StrEnum):
    """Why a replay does not support a grade."""

    MODE = "mode"  # the environment has no such mode, or the episode was recorded in another one
    ACTORS = "actors"  # it is not certain which calls were the agent's own
    TOOL = "tool"  # a tool that a recorded call needs is not there
    DIVERGED = "diverged"  # a key difference in an answer or checkpoint
    UNREACHABLE = "unreachable"  # the environment failed, or its state could not be set up
    TRUNCATED = "truncated"  # the record is not whole: it breaks its own order, or what else it holds contradicts it


STATE = "state_digest"  # in a step's payload: the digest of the state after it


@dataclass(frozen=True, slots=True)
class States:
    """Digests of states that a record holds, beside those of single steps (:data:`STATE`). Empty: not recorded.

    `rule` is how they are made: an environment's own are comparable with them when its declared digest contains it.
    `end_is_reference`: the record says whether the end state was that of the reference actions.
    """

    rule: str = ""
    start: str = ""
    end: str = ""
    reference: str = ""  # after the task's reference actions, the ending ones left out
    end_is_reference: bool | None = None


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """An episode as its archive or store has it. `steps` are all of them, of every actor and phase, in order."""

    id: str
    task: str
    repeat: int
    steps: tuple[Step, ...]
    mode: str | None = None  # None: neither the source nor its evidence says
    definition: Any = None  # the task as it was at run time, in its source's own words
    outcome: Outcome = Outcome.UNGRADED  # as recorded
    reward: float | None = None
    end: str = ""  # why it ended, in the source's words: `user_stop`, `max_steps`, …; empty: unknown
    stated: dict[str, Any] = field(default_factory=dict)
    format: str = ""  # whose rules of order its steps keep; empty: unknown
    states: States = States()


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One call of the episode, again. `index` counts the recorded steps from 0."""

    index: int
    name: str
    recorded: str | None
    replayed: str
    match: Match
    rule: str = ""  # the normalisation under which it is cosmetic, or what differs
    state: str = ""  # the environment's digest after the step, where it was asked for
    missing: bool = False
    required: bool = False  # in the ledger of required calls: it changed the state when it was recorded


class Fidelity(Record):
    """How true a replay was (SOURCES S2: D_first, D_share). Shares are of the `steps` that were calls."""

    steps: int
    compared: int
    same: int
    cosmetic: int
    key: int
    missing: int
    d_first: int | None = None  # index of the first step with a key difference or a missing tool
    d_share: float = 0.0
    required: int = 0  # calls in the ledger
    required_done: int = 0
    checkpoints: int = 0  # recorded states that were compared, those of single steps included
    checkpoints_same: int = 0
    invalid: Invalid | None = None
    invalid_at: int | None = None  # from which step on; after the last one: at the end
    detail: str = ""
    witnesses: tuple[str, ...] = ()  # what beside the steps bears witness to them: turn numbers, a model log, …
    unshown: tuple[Fault, ...] = ()  # faults that nothing in the record would show


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay: its steps, how true it was, and the digest of the state it ended in (None: invalid before the end)."""

    episode: RecordedEpisode
    environment: str
    data: str
    mode: str
    steps: tuple[ReplayedStep, ...]
    fidelity: Fidelity
    end_state: str | None

    @property
    def valid(self) -> bool:
        return self.fidelity.invalid is None
