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
    """One matter. `code` is stable and meant for scripts; `subject` is the task or family it is about."""

    level: Level
    code: str
    place: str
    message: str
    remedy: str = ""
    subject: str = ""

    def __str__(self) -> str:
        what_to_do = f" — {self.remedy}" if self.remedy else ""
        return f"{self.place}: {self.level}: {self.message} [{self.code}]{what_to_do}"


def told_together(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one family that say the same become one, which counts the others. Errors come first."""
    groups: dict[tuple[Level, str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.level, finding.code, finding.subject, finding.message), []).append(finding)
    told = []
    for group in groups.values():
        others = f" (and {len(group) - 1} more variants)" if len(group) > 1 else ""
        told.append(replace(group[0], message=group[0].message + others))
    order = list(Level)
    return tuple(sorted(told, key=lambda finding: (order.index(finding.level), finding.place, finding.code)))
