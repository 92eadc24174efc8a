"""What replaying an archive came to: a row for each episode, counts, shares with both denominators, what was restored.

A replay of a run in the store is kept in that run's own stream, one `replay` event and a `replay.episode` event for
each row: derived records beside the old scores, which stay as they are.
"""

from __future__ import annotations

from harness.records.archive import Finding
from harness.records.base import Record
from harness.records.grade import Grade
from harness.records.replay import Fidelity, Invalid
from harness.records.vocabulary import Outcome

REPLAY_SCHEMA = "assay-replay/1"
REPLAY = "replay"
REPLAYED = "replay.episode"


class EpisodeReplay(Record):
    """One episode of the archive. `trial` is its id in the store, where it is there; `grade` None: no grader was named.

    `restored` is the outcome given to an episode that was never graded, by Algorithm 1 of SOURCES S2.
    """

    episode: str
    task: str
    repeat: int
    recorded: Outcome
    reward: float | None = None
    fidelity: Fidelity
    end_state: str | None = None
    grade: Grade | None = None
    restored: Outcome | None = None
    trial: str | None = None
    flags: tuple[str, ...] = ()  # tools that are declared not to be deterministic, where they answered otherwise

    @property
    def valid(self) -> bool:
        return self.fidelity.invalid is None

    @property
    def verdict(self) -> Outcome | None:
        """The new outcome, where the replay supports one."""
        return self.grade.outcome if self.valid and self.grade is not None and self.grade.outcome.graded else None


class Stratum(Record):
    """Episodes that are alike in what a replay's truth may depend on. `agree` of `graded` replays give the recorded
    outcome; `lower` is the one-sided 95 % bound of that share (Clopper–Pearson)."""

    termination: str
    write_required: bool
    checkpoint: str  # answers: "matched", "partly" (some were not recorded), or "none recorded"
    graded: int
    agree: int
    fidelity: float | None
    lower: float
    ungraded: int  # episodes without a recorded verdict
    restored: int  # of these, with an outcome now
    why: str = ""  # why none is


class Restored(Record):
    """The rate over all planned episodes, before and after. What stays ungraded counts as fail and as pass."""

    threshold: float
    strata: tuple[Stratum, ...]
    restored: int
    restored_passed: int
    before: tuple[float, float]
    after: tuple[float, float]


class ReplayHeader(Record):
    """What was replayed, where, and how strictly. Digests are `sha256:…`; `archive` is of all that was read."""

    path: str
    format: str
    archive: str
    environment: str
    environment_code: str
    data: str
    mode: str
    normalisations: tuple[str, ...]
    states: bool  # whether recorded digests of states were compared
    grader: str = ""
    grader_code: str = ""
    rule: str = ""
    tasks: str = ""  # the version of task data that was graded by; empty: as recorded
    at: str = ""


class Reproduced(Record):
    """How many recorded verdicts the replay gives again. `moved`: episode, as `recorded → now`."""

    recorded: int
    compared: int
    same: int
    moved: dict[str, str]


class ReplayReport(Record):
    """The whole replay. With n planned, v valid, m valid and passed: `rate` is m/v, `bounds` [m/n, (m+n−v)/n].

    Without a grader, v is the number of valid replays and m is not known.
    """

    schema_name: str = REPLAY_SCHEMA
    header: ReplayHeader
    planned: int
    read: int
    counts: dict[str, int]  # calls, same, cosmetic, key, unchecked, missing, required, checkpoints, …
    rules: dict[str, int]  # normalisation -> answers that are the same under it
    replayed: int  # valid replays
    invalid: dict[Invalid, int]
    valid: int
    passed: int | None
    rate: float | None
    bounds: tuple[float, float] | None
    reproduced: Reproduced | None
    restored: Restored | None = None
    episodes: tuple[EpisodeReplay, ...]
    unread: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()  # episodes that should be there and are not, by name
    at_least: bool = False  # the archive was cut off, and how much more is missing cannot be known
    refused: str = ""  # why none of the archive was replayed: it was recorded in another mode
    taken: tuple[str, ...] = ()  # options that were not given: as what they were taken, and the evidence
    kept_in: tuple[str, ...] = ()  # runs whose streams have it now
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether everything was read, every replay is valid, and, with a grader, every episode has a verdict."""
        return not self.unread and not self.at_least and self.valid == self.planned
