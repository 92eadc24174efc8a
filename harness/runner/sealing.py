"""The seal: the declared boundary between what the solver did and what the grader does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from harness.protocols import Sandbox, SandboxFileError
from harness.records.base import digest_of, sha256_of
from harness.records.event import Event
from harness.records.task import Task
from harness.records.vocabulary import Actor, GradingEnvironment, Phase, Reason
from harness.runner.carrying import Carried, carry
from harness.runner.journal import Journal
from harness.runner.keeping import KEEP_BYTES, Kept, keep_changes

SEAL = "seal"
ARTIFACT, CHANGE = "artifact:", "change:"  # what the names of its blobs begin with
MOST_CHANGES = 500
MOST_NAMED = 5
LARGE_BYTES = 1 << 20  # archives that are read off the loop, where other trials wait
PROGRAM_FOLDERS = frozenset(f"{root}/{name}" for root in ("", "/usr", "/usr/local") for name in ("bin", "sbin"))
FIRST_FOLDERS = frozenset({"/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"})  # searched before /usr/bin
LIBRARY_FOLDERS = tuple(f"{root}/lib{bits}/" for root in ("", "/usr", "/usr/local") for bits in ("", "32", "64"))
LOADED_BY_ALL = frozenset({"/etc/ld.so.preload", "/etc/ld.so.cache"})
LOADED_BY_PYTHON = frozenset({"sitecustomize.py", "usercustomize.py"})


@dataclass(frozen=True)
class Sealed:
    """What was found at the seal. `artifacts` are tars by their absolute path in the sandbox."""

    artifacts: dict[str, bytes]
    missing: dict[str, str]  # path -> problem
    flags: tuple[str, ...] = ()
    reason: Reason | None = None  # a limit that was met: qualifies a fail
    ungraded: tuple[Reason, str] | None = None  # why this cannot be graded
    interaction: str = ""  # digest of the live stream's interaction
    state: str | None = None  # digest of an environment's state

    def ungradable(self, reason: Reason, detail: str) -> Sealed:
        """The same, not to be graded."""
        return replace(self, ungraded=(reason, detail))


def interaction_digest(events: Iterable[Event]) -> str:
    """Over all that anyone but the harness did in the interaction, and agent or user ever, as a stream has it: written
    down at the seal, and equal after grading, or something was written where the agent's own doing stands."""
    return digest_of([event.hash for event in events if _of_interaction(event)])


def _of_interaction(event: Event) -> bool:
    if event.actor in (Actor.AGENT, Actor.USER):
        return True
    return event.phase is Phase.INTERACTION and event.actor is not Actor.HARNESS


async def seal(sandbox: Sandbox, task: Task, journal: Journal, keep_bytes: int = KEEP_BYTES) -> Sealed:
    """End what the solver left running, then fix and record what it did. Up to `keep_bytes` of a container that is
    graded as it is are kept, to be graded again later.

    Raises SandboxFault when the container is gone.
    """
    flags: list[str] = []
    reason: Reason | None = None
    if task.grading.keep_services:
        flags.append("services kept alive through the seal")
    else:
        report = await sandbox.end_processes()
        journal.note("sandbox.processes_ended", report.plain())
    health = await sandbox.health()
    if health.memory_killed:
        flags.append(f"a process was killed for memory (limit {task.limits.memory_mb} MB)")
        reason = Reason.MEMORY_LIMIT
    if _over_disk(health.disk_bytes, task.limits.disk_mb):
        flags.append(f"wrote {health.disk_bytes} bytes (limit {task.limits.disk_mb} MB)")
        reason = Reason.DISK_LIMIT
    artifacts, missing = await _collect(sandbox, task)
    carried = await _carried(artifacts)
    if carried.left_out:
        flags.append(
            f"no files, so not carried: {_named(f'{path} ({what})' for path, what in carried.left_out.items())}"
        )
        if reason is None and carried.left_out.keys() & set(task.grading.artifacts):
            reason = Reason.ARTIFACT_NO_FILE
    if (
        task.grading.environment is GradingEnvironment.FRESH
    ):  # else they are archived, and the grader sees the container
        missing |= {path: carried.left_out[path] for path in artifacts if path in carried.left_out}
        artifacts = carried.archives
    changes = await sandbox.changes()
    if task.grading.environment is GradingEnvironment.SAME:
        flags += replaced_programs(changes)
    kept = await _kept(sandbox, task, changes, keep_bytes)
    archives = {f"{ARTIFACT}{path}": data for path, data in artifacts.items()}
    archives |= {f"{CHANGE}{path}": data for path, data in kept.archives.items()}
    # Redacting inside an archive would corrupt it: one that holds a secret is not kept at all.
    interaction = interaction_digest(journal.store.events(journal.stream))
    secret = sorted(name for name, data in archives.items() if not journal.is_clean(data))
    journal.note(
        SEAL,
        {
            "health": health.plain(),
            "peak_memory_bytes": await sandbox.peak_memory(),
            "changes": list(changes[:MOST_CHANGES]),
            "changes_count": len(changes),
            "artifacts": {path: sha256_of(data) for path, data in artifacts.items()},
            "artifacts_missing": missing,
            "artifacts_left_out": dict(list(carried.left_out.items())[:MOST_CHANGES]),
            "interaction": interaction,
            "kept": {"deleted": list(kept.deleted), "problem": kept.problem},
            "secret": secret,
            "flags": flags,
        },
        blobs={name: journal.keep(data) for name, data in archives.items() if name not in secret},
    )
    return Sealed(artifacts, missing, tuple(flags), reason, interaction=interaction)


def replaced_programs(changes: Iterable[str]) -> list[str]:
    """A flag when programs of the image, or what programs load, are not what they were, or others are found before
    them: tests that run in the same container run with them."""
    told = [(kind, path) for kind, _, path in (change.partition(" ") for change in changes)]
    parents = {path.rpartition("/")[0] for _, path in told}  # told for what is below them
    found = [path for kind, path in told if path not in parents and _steers_tests(kind, path)]
    if not found:
        return []
    return [f"programs are not the image's: {_named(found)}"]


def _named(found: Iterable[str]) -> str:
    names = sorted(found)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _steers_tests(kind: str, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if kind == "A":
        stands_before = folder in FIRST_FOLDERS or "/glibc-hwcaps/" in path
        return stands_before or path in LOADED_BY_ALL or name in LOADED_BY_PYTHON or name.endswith(".pth")
    return folder in PROGRAM_FOLDERS or path.startswith(LIBRARY_FOLDERS) or path in LOADED_BY_ALL


def _over_disk(written: int | None, limit_mb: int | None) -> bool:
    return written is not None and limit_mb is not None and written > limit_mb * 1024 * 1024


async def _kept(sandbox: Sandbox, task: Task, changes: Sequence[str], most_bytes: int) -> Kept:
    if task.grading.environment is GradingEnvironment.FRESH:
        return Kept(problem="graded afresh: its artifacts are kept")
    if task.grading.keep_services:
        return Kept(problem="its services were part of what was graded, and processes cannot be kept")
    return await keep_changes(sandbox, changes, most_bytes)


async def _carried(artifacts: dict[str, bytes]) -> Carried:
    if sum(map(len, artifacts.values())) < LARGE_BYTES:
        return carry(artifacts)
    return await anyio.to_thread.run_sync(carry, artifacts)


async def _collect(sandbox: Sandbox, task: Task) -> tuple[dict[str, bytes], dict[str, str]]:
    artifacts: dict[str, bytes] = {}
    missing: dict[str, str] = {}
    for path in task.grading.artifacts:
        try:
            artifacts[path] = await sandbox.fetch(path, max_bytes=task.grading.artifact_bytes)
        except SandboxFileError as error:
            missing[path] = error.problem
    if task.grading.environment is GradingEnvironment.SAME:
        return artifacts, {}  # only archived: the grader looks at the container itself
    return artifacts, missing
