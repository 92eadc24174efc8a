"""What an importer reads out of another harness's archive, before it becomes a run of ours.

Nothing here is invented: what a source does not say is None, "" or a claim with the basis `unknown`. Steps and episodes
are plain values, not validated records: an archive has millions of them, and they live for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from harness.records.base import Record
from harness.records.errors import AssayError
from harness.records.vocabulary import Actor, Outcome, Phase, Reason, StopReason


class ArchiveError(AssayError):
    """An archive cannot be used: `place` is the file, with a byte or an entry where one is known."""


class Basis(StrEnum):
    """How far a claim about an episode is supported by its source."""

    STATED = "stated"  # the source says so
    INFERRED = "inferred"  # it follows from the evidence that is named
    AMBIGUOUS = "ambiguous"  # the evidence allows another reading, which is named
    UNKNOWN = "unknown"  # the source is silent


class Claim(Record):
    """A statement about an episode, and what it rests on. `value` None: nothing can be said."""

    value: str | None = None
    basis: Basis = Basis.UNKNOWN
    evidence: str = ""  # the field of the source, and what stands in it


UNKNOWN = Claim()
DOUBT = "doubt"  # in what is stated of an episode: why its steps may not be what the agent did
CUT = "archive.cut"  # the rule of findings that a file ends too early: what came after it is not known
TRACE = "trace"  # in what is stated of an episode: a :class:`Trace` of it, as plain values


class Fault(StrEnum):
    """What may have been done to a record. Evidence shows some of them; a replay says which nothing would show."""

    DROPPED = "dropped"  # a call left out together with its answer
    SWAPPED = "swapped"  # two neighbouring calls in each other's place, with their answers
    ARGUMENT = "argument"  # an argument that no answer depends on, edited
    OBSERVATION = "observation"  # an answer, edited
    ROW = "row"  # a row of the database that no answer shows, changed
    END = "end"  # its last steps cut off


class Trace(Record):
    """What a record holds beside its steps that bears witness to them: turn numbers, times, sums, second copies.

    `by` names it, `shows` what it would show. `broken`: the first step that it contradicts, and how.
    """

    by: tuple[str, ...] = ()
    shows: tuple[Fault, ...] = ()
    broken: tuple[int, str] | None = None


class SourceRef(Record):
    """The bytes that a record was made from: `length` bytes at `offset` of a file's content (decompressed)."""

    file: str
    offset: int
    length: int
    sha256: str  # of these bytes


class Finding(Record):
    """Something an archive says that cannot be right, or that cannot be read. Nothing is ever repaired by itself."""

    rule: str
    place: str
    what: str
    remedy: str = ""
    proposal: dict[str, Any] = {}  # the label as it should read, by field
    evidence: str = ""  # what the proposal rests on
    unread: bool = False  # a part of the archive could not be read or used


class Step(NamedTuple):
    """One thing that was done or said. `wall` is ISO 8601 or ""; payload keys follow OpenTelemetry GenAI names."""

    kind: str  # "message", "model.call", "tool.call", "tool.result", "reference.action", "span"
    actor: Actor
    payload: dict[str, Any]
    phase: Phase | None = Phase.INTERACTION
    wall: str = ""
    span: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class ArchiveTask:
    """A task as the archive knows it. `definition` is its embedded text as it was at run time, where there is one."""

    id: str
    instruction: str = ""
    definition: Any = None


@dataclass(frozen=True, slots=True)
class ArchiveRun:
    """The identity of one run in an archive. `key` is unique in the archive; `run` is an id of ours, kept as it is."""

    key: str
    suite: str
    agent: str | None = None
    scaffold: str | None = None
    model: str | None = None
    created: str = ""  # ISO 8601; "" when the source has no date
    suite_version: str = ""
    tasks: tuple[str, ...] = ()  # the planned ones, where the source states a plan
    repeats: int | None = None  # as stated
    run: str | None = None
    stated: dict[str, Any] = field(default_factory=dict)  # totals and settings of the source, in its own words
    missing: tuple[str, ...] = ()  # what the format could say and this archive does not

    @property
    def states_plan(self) -> bool:
        """Whether the source says which tasks it planned, and how often."""
        return bool(self.tasks) and self.repeats is not None


@dataclass(frozen=True, slots=True)
class ArchiveEpisode:
    """One attempt at a task. `steps` gives what happened when it is asked for; numbers are None when unknown.

    `usage` is the usage object of the whole episode in the source's own dialect; of single calls it stands in the
    steps' payloads under `usage_raw`.
    """

    run: str  # ArchiveRun.key
    task: ArchiveTask
    source: SourceRef
    repeat: int = 0
    attempt: int = 1
    slot: int | None = None
    outcome: Outcome = Outcome.UNGRADED
    reason: Reason | None = None
    detail: str = ""
    reward: float | None = None
    criteria: dict[str, float] = field(default_factory=dict)
    stop: StopReason = StopReason.UNKNOWN
    stop_detail: str = ""
    grading: Claim = UNKNOWN
    termination: Claim = UNKNOWN
    mode: Claim = UNKNOWN
    attribution: Claim = UNKNOWN
    steps: Callable[[], Sequence[Step]] = tuple
    usage: Any = None
    tokens: int | None = None  # a total that is not split into input and output
    cost_usd: float | None = None
    step_count: int | None = None
    seconds: float | None = None
    started: str = ""
    finished: str = ""
    stated: dict[str, Any] = field(default_factory=dict)  # what else the source says of it, in its own words
    expects_usage: bool = False  # the format has a place for usage; none in it is worth a finding
    flags: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def place(self) -> str:
        """Where in the archive it stands."""
        return f"{self.source.file}, byte {self.source.offset}: task {self.task.id}, trial {self.repeat}"


@dataclass(frozen=True, slots=True)
class Recognition:
    """What an archive is, from its content. `sure` orders importers that both recognise it, highest first."""

    format: str
    what: str  # one line for people: the format, and what in the content gave it away
    sure: int = 1
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user adds that an archive does not hold. `reference` and `executed` are paths of further files."""

    agent: str | None = None
    scaffold: str | None = None
    model: str | None = None
    scorer: str | None = None  # whose score is the outcome, where several scored
    reference: str | None = None  # tasks with their reference actions
    executed: str | None = None  # an archive that holds what the agent itself did


ArchiveItem = ArchiveRun | ArchiveEpisode | Finding
