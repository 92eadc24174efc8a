"""Where a problem is, and which known word is near an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from harness.records.errors import LoadErrors, TaskError


@dataclass(frozen=True, slots=True)
class Where:
    """Names the places of one task: its folder as the user gave it, and the variant for a rendered one."""

    folder: str
    variant: str | None = None

    def place(self, path: str = "", line: int | None = None) -> str:
        """`folder/path:line`, with the variant when there is one."""
        text = f"{self.folder}/{path}" if path else self.folder
        text = f"{text}:{line}" if line is not None else text
        return f"{text} (variant {self.variant})" if self.variant is not None else text


def near_match(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def raise_all(errors: Iterable[TaskError], place: str = "") -> None:
    """Raise one error as it is, several as LoadErrors; nothing when there is none. Nested LoadErrors are flattened."""
    flat = tuple(inner for error in errors for inner in flatten(error))
    if len(flat) == 1:
        raise flat[0]
    if flat:
        raise LoadErrors(flat, place=place)


def flatten(error: TaskError) -> tuple[TaskError, ...]:
    """The single problems behind an error."""
    return error.errors if isinstance(error, LoadErrors) else (error,)
