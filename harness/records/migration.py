"""What converting an archive into another format came to, episode by episode."""

from __future__ import annotations

from harness.records.base import Record

MIGRATION_SCHEMA = "assay-migration/1"


class MigrationDifference(Record):
    """Something of an episode that the conversion changed. `before` and `after` are null where it is not there."""

    episode: str
    what: str  # "calls", "replay", "end state", "outcome", "reward", "criteria", "recorded", "missing", "added"
    before: str | None
    after: str | None


class MigrationReport(Record):
    """The same archive before and after, under one rule. `moved` episodes have a difference in what they score."""

    schema_name: str = MIGRATION_SCHEMA
    path: str
    format: str
    to: str
    written: tuple[str, ...]  # files and folders, empty: nothing was kept
    checked: bool
    grader: str = ""
    environment: str = ""
    mode: str = ""
    episodes: int = 0
    unread_before: int = 0
    unread_after: int = 0
    moved: int = 0
    differences: tuple[MigrationDifference, ...] = ()
    taken: tuple[str, ...] = ()  # options that were not given: as what they were taken, and the evidence
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing that was checked is another thing now."""
        return not self.differences and self.unread_after == self.unread_before
