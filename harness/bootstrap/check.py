"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`warn`: works, with a limit worth knowing; `fail`: a run would not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, what was seen, and what to do about it ("" when nothing need be done)."""

    name: str
    status: Status
    finding: str
    remedy: str = ""
