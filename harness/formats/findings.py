"""What lint has to say: one finding per matter, many variants told together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Errors keep a suite from being loaded; notes are exposures that may be meant."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One matter. `code` is stable and meant for scripts; `subject` is the task or family it is about, `count` how many
    of its tasks share it (`place` is that of the first)."""

    level: Level
    code: str
    place: str
    message: str
    remedy: str = ""
    subject: str = ""
    count: int = 1

    def __str__(self) -> str:
        others = f" (and {self.count - 1} more variants)" if self.count > 1 else ""
        return f"{_on_one_line(self.place)}: {self.level}: {self.message}{others} [{self.code}]{self._what_to_do}"

    @property
    def _what_to_do(self) -> str:
        return f" — {self.remedy}" if self.remedy else ""


def _on_one_line(path: str) -> str:
    """A path with what would break or steer the line written out: folders may be called anything."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in path)


def told_together(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one family that say the same become one, which counts the others. Errors come first."""
    groups: dict[tuple[Level, str, str, str], list[Finding]] = {}
    for finding in findings:
        about = finding.subject or finding.place
        groups.setdefault((finding.level, finding.code, about, finding.message), []).append(finding)
    told = [replace(group[0], count=len(group)) for group in groups.values()]
    order = list(Level)
    return tuple(sorted(told, key=lambda finding: (order.index(finding.level), finding.place, finding.code)))


def lines_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Findings for people: what several tasks or families share is one line, with their number and names."""
    kinds: dict[tuple[Level, str, str, str], list[Finding]] = {}
    for finding in findings:
        # An error is mended where it stands, so each keeps its own place and line.
        alone = finding.place if finding.level is Level.ERROR or not finding.subject else ""
        kinds.setdefault((finding.level, finding.code, finding.message, alone), []).append(finding)
    return tuple(str(group[0]) if len(group) == 1 else _line_of_many(group) for group in kinds.values())


def _line_of_many(group: list[Finding]) -> str:
    first = group[0]
    tasks = sum(finding.count for finding in group)
    names = ", ".join(sorted({finding.subject for finding in group}))
    return f"{first.level}: {first.message} [{first.code}]{first._what_to_do} ({tasks} tasks: {names})"
