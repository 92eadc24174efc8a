"""What makes a task due for an audit: a fingerprint of its parts decides, never a date."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from harness.records.audit import Fingerprint
from harness.records.base import digest_of, sha256_of
from harness.records.conversation import Conversation
from harness.records.task import Task

ENVIRONMENT = "environment"  # the platform of a conversation, which has no container
RACY_NS = 2_000_000_000  # two seconds: the coarsest clock of a file system in use
_UNSEEN = frozenset({"__pycache__", ".git"})


def fingerprint(task: Task, grader_code: str | None, solver_code: str | None) -> Fingerprint:
    """The parts of a task as it is now. `grader_code`, `solver_code`: digests of the code that judges and solves it."""
    environment = task.environment
    plain = environment.model_dump(mode="json", exclude={"files", "setup_files", "setup_s"})
    files = {"files": environment.files.digests(), "setup": environment.setup_files.digests()}
    grading = task.grading.model_dump(mode="json", exclude={"tests", "timeout_s", "grader"})
    talk = task.conversation
    does, held_to, happens_in = ([],) * 3 if talk is None else _conversation(talk)
    return Fingerprint(
        version=task.version,
        image=task.image.locator or task.image.reference,
        platform=task.image.platform or "",
        instruction=_short(task.instruction),
        environment=_short([plain, files, task.context_digest, *happens_in]),
        allowances=_short(
            [task.budget.plain(), task.limits.plain(), environment.setup_s, task.grading.timeout_s],
        ),
        solution=_short([task.solution.script, task.solution.env, task.solution.files.digests(), *does]),
        tests=_short([grading, task.grading.tests.digests(), *held_to]),
        grader=f"{task.grading.grader} {_code(grader_code)}",
        solver=_code(solver_code),
    )


def _conversation(talk: Conversation) -> tuple[list[object], list[object], list[object]]:
    """Of a conversation what belongs to the solution, to the tests and to the environment."""
    plain = talk.model_dump(mode="json", exclude={"folder", "actions", "outputs"})
    return [[action.plain() for action in talk.actions]], [list(talk.outputs)], [plain]


def tree_stamp(folder: Path, also: Mapping[str, str | None]) -> str | None:
    """A digest of names, sizes, times and inodes below `folder`, and of `also`: equal stamps, nothing was written.

    What git's index goes by. A differing stamp means only that the fingerprints must be computed. None, which is equal
    to nothing, while a file was changed so lately that it could be written again within the same tick (what git calls
    racy), or lies ahead of the clock; and where a folder cannot be read.
    """
    settled_ns = time.time_ns() - RACY_NS
    seen: list[tuple[str, int, int, int, int, int]] = []
    top = str(folder)
    pending = [top]
    try:
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _UNSEEN:
                            pending.append(entry.path)
                        continue
                    found = entry.stat()
                    if found.st_ctime_ns > settled_ns:
                        return None
                    path = entry.path[len(top) :]
                    times = found.st_mtime_ns, found.st_ctime_ns
                    seen.append((path, found.st_size, *times, found.st_ino, found.st_mode))
    except OSError:  # gone while it was read, or a link that leads nowhere: whoever loads the suite says what is wrong
        return None
    seen.sort()
    return sha256_of(repr((seen, sorted(also.items()))).encode("utf-8", "surrogateescape"))


def _short(value: object) -> str:
    return digest_of(value)[7:23]


def _code(digest: str | None) -> str:
    return "" if digest is None else digest[7:23]
