"""Grades of episodes for which a rule has no verdict, and the digest of a rule's source."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from harness.protocols import EpisodeCase
from harness.records.grade import Grade
from harness.records.vocabulary import Outcome, Reason

PASS_AT = 1.0 - 1e-6
_CALLS = "harness.records.calls"  # which call a step of a record is
_SHARED = ("conversation", "criteria", "phrases", "reference", "variants", "verdicts")


def invalid(grader: str, case: EpisodeCase) -> Grade:
    """The grade of a replay that does not support one."""
    fidelity = case.replayed.fidelity
    word = fidelity.invalid.value if fidelity.invalid is not None else "invalid"
    return Grade(grader=grader, outcome=Outcome.INVALID, detail=f"{word}: {fidelity.detail}".rstrip(": "))


def ungraded(grader: str, reason: Reason, detail: str) -> Grade:
    """No verdict, and why."""
    return Grade(grader=grader, outcome=Outcome.UNGRADED, reason=reason, detail=detail)


def outcome_of(reward: float) -> Outcome:
    """Passed from a reward of 1 on."""
    return Outcome.PASSED if reward >= PASS_AT else Outcome.FAILED


def source_digest(modules: Iterable[str]) -> str:
    """sha256 over the source of modules of this package, by name, with what all graders here share."""
    hasher = hashlib.sha256()
    names = [f"{__package__}.{name}" for name in {*modules, *_SHARED}]
    for name in sorted([*names, _CALLS]):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(name)
        hasher.update(name.encode() + b"\0" + Path(found.origin).read_bytes())
    return "sha256:" + hasher.hexdigest()
