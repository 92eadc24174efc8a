"""What makes a task due for an audit: a fingerprint of its parts decides, never a date."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.records.audit import Fingerprint
from harness.records.base import digest_of
from harness.records.task import Task

_UNSEEN = frozenset({"__pycache__", ".git"})


def fingerprint(task: Task, grader_code: str | None, solver_code: str | None) -> Fingerprint:
    """The parts of a task as it is now. `grader_code`, `solver_code`: digests of the code that judges and solves it."""
    environment = task.environment
    plain = environment.model_dump(mode="json", exclude={"files", "setup_files", "setup_s"})
    files = {"files": environment.files.digests(), "setup": environment.setup_files.digests()}
    grading = task.grading.model_dump(mode="json", exclude={"tests", "timeout_s", "grader"})
    return Fingerprint(
        version=task.version,
        image=task.image.locator or task.image.reference,
        platform=task.image.platform or "",
        instruction=_short(task.instruction),
        environment=_short([plain, files, task.context_digest]),
        allowances=_short(
            [task.budget.plain(), task.limits.plain(), environment.setup_s, task.grading.timeout_s],
        ),
        solution=_short([task.solution.script, task.solution.env, task.solution.files.digests()]),
        tests=_short([grading, task.grading.tests.digests()]),
        grader=f"{task.grading.grader} {_code(grader_code)}",
        solver=_code(solver_code),
    )


def tree_stamp(folder: Path, also: Mapping[str, str | None]) -> str:
    """A digest of names, sizes, times and inodes below `folder`, and of `also`: equal stamps, nothing was written.

    What git's index goes by. A differing stamp means only that the fingerprints must be computed. Raises OSError.
    """
    seen: list[tuple[str, int, int, int, int]] = []
    pending = [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _UNSEEN:
                        pending.append(entry.path)
                    continue
                found = entry.stat()
                seen.append((entry.path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode))
    return digest_of([sorted(seen), dict(also)])


def _short(value: object) -> str:
    return digest_of(value)[7:23]


def _code(digest: str | None) -> str:
    return "" if digest is None else digest[7:23]
