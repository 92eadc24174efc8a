"""A recorded trial graded again: the old score is kept, the new one links to it.

A regrade is written into its run's own stream, one `regrade` event and then a `regrade.grade` event for each trial, so
that it is chained, verified and exported with the run. Corrections are those grades whose outcome is another one.
"""

from __future__ import annotations

from harness.records.base import Record
from harness.records.grade import Grade
from harness.records.vocabulary import Outcome

REGRADE = "regrade"
REGRADED = "regrade.grade"
CORRECTION_SCHEMA = "assay-correction/1"


class RegradeHeader(Record):
    """What a run was graded again by. Digests are `sha256:…`; empty where there is nothing to take one of."""

    regrade: str  # unique in its run: regrade-1, regrade-2, …
    grader: str  # id@version
    code: str  # digest of the grader's source
    rule: str  # what passes, in words
    data: str = ""  # the task data by name; empty: as recorded
    data_digest: str = ""
    environment: str = ""  # name@version, or the image that the tests ran in
    environment_code: str = ""
    mode: str = ""
    archive: str = ""  # of the archive that the run was imported from; of a run of ours, the hash of its stream's head
    at: str = ""  # ISO 8601


class Regraded(Record):
    """One trial graded again. `evidence` is the digest of what the grader read; `why` says what moved the outcome."""

    regrade: str
    trial: str
    task: str
    repeat: int
    old: Outcome
    old_reward: float | None = None
    old_grader: str = ""  # empty: the record does not say
    grade: Grade
    evidence: str = ""
    why: str = ""

    @property
    def moved(self) -> bool:
        return self.grade.outcome is not self.old


class Correction(Record):
    """A line of `corrections.jsonl`, which travels with every export of its run."""

    schema_name: str = CORRECTION_SCHEMA
    run: str
    episode: str  # the trial's id
    task: str
    repeat: int
    old: Outcome
    old_reward: float | None
    new: Outcome
    new_reward: float | None
    reason: str
    grader_from: str
    grader_to: str
    code: str
    data: str
    data_digest: str
    archive: str
    evidence: str
