"""Typed errors. Each says what is wrong, where, and what to do; the command line turns them into exit codes.

Exit codes (DESIGN, "Exit codes"): 2 usage or configuration, 3 something planned has no grade or an alert fired,
4 a gate failed, 5 the engine or a service cannot be reached, 130 interrupted.
"""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """An error with a place (file:line, key, container) and a remedy, both printed after the message."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        what_to_do = f" — {self.remedy}" if self.remedy else ""
        return f"{where}{self.message}{what_to_do}"


class ConfigError(AssayError):
    """The command line, a configuration file or an option combination is not usable."""


class TaskError(AssayError):
    """A task or suite on disk is malformed; `place` is file:line or file and key."""


class LoadErrors(TaskError):
    """Several things are wrong with a suite; all of them at once, so that one pass mends them."""

    def __init__(self, errors: tuple[TaskError, ...], *, place: str = "") -> None:
        self.errors = errors
        lines = "".join(f"\n  {error}" for error in errors)
        super().__init__(f"{len(errors)} problem(s) in the suite{lines}", place=place)


class StoreError(AssayError):
    """The evidence store is damaged, full, locked by another process, or of an unknown version."""


class EngineUnavailable(AssayError):
    """The container engine or a service cannot be reached."""

    exit_code = 5


class SandboxFault(AssayError):
    """The sandbox failed under a trial, through no fault of the solver: an infrastructure fault.

    `reason` is a member of :class:`harness.records.vocabulary.Reason`'s infrastructure group.
    """

    exit_code = 5

    def __init__(self, message: str, *, reason: str, place: str = "", remedy: str = "") -> None:
        super().__init__(message, place=place, remedy=remedy)
        self.reason = reason


class ProviderFault(AssayError):
    """The model service refused or failed after all permitted attempts. Its text says why first and where last: the
    address is the same for every call, and displays cut."""

    exit_code = 5

    def __init__(self, message: str, *, place: str = "", remedy: str = "", status: int | None = None) -> None:
        super().__init__(message, place=place, remedy=remedy)
        self.status = status

    def __str__(self) -> str:
        what_to_do = f" — {self.remedy}" if self.remedy else ""
        where = f" ({self.place})" if self.place else ""
        return f"{self.message}{what_to_do}{where}"


class Revoked(AssayError):
    """A solver used its handle after the seal; nothing was done."""
