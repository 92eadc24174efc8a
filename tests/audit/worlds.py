"""Suites, stores and engines for audit tests: everything real but the containers, which are the in-memory twin."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import harness.api.audit_cycle
import harness.api.audit_glance
import harness.api.audit_look
import harness.api.audit_views
import harness.api.audits
import harness.api.runs
import harness.api.scores
import harness.api.stores
import harness.audit.history
import harness.runner.trial
from harness.api.audit_request import AuditRequest
from harness.api.audits import audit_async
from harness.api.request import AdaptiveRequest, RunRequest
from harness.api.runs import Watch, execute
from harness.formats.lock import LOCK_FILE, make_lock, write_lock
from harness.formats.suite import load_suite
from harness.records.audit_views import AuditReport
from harness.records.execution import ImageFacts
from harness.records.suite import ImageLock
from harness.report.summary import Summary
from harness.store.memory import MemoryStore
from harness.testing import MemorySandboxProvider, Process, tiny_shell

ACTORS = Path(__file__).with_name("actors.py")
PASS, FAIL = "echo 1 > /logs/verifier/reward.txt", "echo 0 > /logs/verifier/reward.txt"
CHECK = f"grep -q 42 /app/answer && {PASS} || {FAIL}\n"
SOLVE = "echo 42 > /app/answer\n"
IMAGE, DIGEST = "base:1", "sha256:" + "ab" * 32
BEGINNING = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)

TASK_TOML = """\
[agent]
timeout_sec = {wall_s}

[environment]
docker_image = "{image}"
network_mode = "no-network"
memory_mb = {memory_mb}

[verifier]
timeout_sec = 30.0

[assay]
capabilities = []
"""


@dataclass(frozen=True)
class Files:
    """What a task is made of."""

    do: str = "Write the answer. Task number 0"
    check: str = CHECK
    solve: str | None = SOLVE
    image: str = IMAGE
    wall_s: float = 600.0
    memory_mb: int = 256

    def write(self, folder: Path) -> None:
        for name in ("tests", "solution"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        toml = TASK_TOML.format(wall_s=self.wall_s, image=self.image, memory_mb=self.memory_mb)
        (folder / "task.toml").write_text(toml)
        (folder / "instruction.md").write_text(self.do)
        (folder / "tests" / "test.sh").write_text(self.check)
        if self.solve is not None:
            (folder / "solution" / "solve.sh").write_text(self.solve)


class Provider(MemorySandboxProvider):
    """The twin, as the engine of a command: it can be asked whether it answers."""

    async def ping(self) -> None:
        """It does."""


@dataclass
class Laboratory:
    """A suite on disk, a store in memory, and an engine whose images can change."""

    root: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    image_files: dict[str, bytes] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=lambda: {IMAGE: DIGEST})
    gone: set[str] = field(default_factory=set)
    slow: float = 1.0  # how much longer a `sleep` takes than it says
    memory_bytes: int = 0
    now: datetime = BEGINNING
    flips: int = 0  # every so many-th run of a test script fails, if it is not 0
    _tests: int = 0

    @property
    def suite(self) -> Path:
        return self.root / "demo"

    def write(self, tasks: Mapping[str, Files]) -> None:
        for name, files in tasks.items():
            files.write(self.suite / name)
        self.lock()

    def lock(self) -> None:
        locks = {name: ImageLock(digest=digest, platform="linux/amd64") for name, digest in self.images.items()}
        write_lock(self.suite / LOCK_FILE, make_lock(load_suite(self.suite, ignore_lock=True), locks))

    def provider(self) -> Provider:
        here = {digest for name, digest in self.images.items() if name not in self.gone}
        there = [ImageFacts(digest=digest, platform="linux/amd64") for digest in here]
        return Provider(self.program, image_files=self.image_files, images=there)

    async def program(self, process: Process) -> int:
        """The tiny shell, slower or hungrier than the script says, with tests that fail now and then."""
        process.memory_bytes = self.memory_bytes
        if any(word.endswith("/test.sh") for word in process.argv):
            self._tests += 1
            if self.flips and self._tests % self.flips == 0:
                process.files["/logs/verifier/reward.txt"] = b"0\n"
                return 0
            if "/app/hog" in process.files:  # what an agent left eats the memory of the tests
                return process.exhaust_memory()
        if self.slow != 1.0 and (script := process.files.get("/solution/solve.sh", b"")).startswith(b"sleep "):
            seconds, rest = script.split(b"\n", 1)
            process.files["/solution/solve.sh"] = b"sleep %g\n%s" % (float(seconds[6:]) * self.slow, rest)
        return await tiny_shell(process)

    def request(self, **changes: Any) -> AuditRequest:
        values: dict[str, Any] = {"suite": str(self.suite), "store": "memory", "mutants": 0, **changes}
        if not values["mutants"]:
            values.setdefault("sentinels", ("gold", "null"))
        return AuditRequest(**values)

    async def audit(self, **changes: Any) -> AuditReport:
        self.now += timedelta(minutes=1)
        return await audit_async(self.request(**changes), Watch())

    async def run(self, adaptive: AdaptiveRequest | None = None, **options: Any) -> Summary:
        self.now += timedelta(minutes=1)
        request = RunRequest(
            suite=str(self.suite),
            solver=f"{ACTORS}:Counting",
            solver_options=options,
            store="memory",
            agent="counting",
            adaptive=adaptive,
        )
        return await execute(request, Watch())

    def pass_time(self, **span: float) -> None:
        self.now += timedelta(**span)

    def utc_now(self) -> str:
        """A clock that stands still unless it is moved; a tick at each look keeps moments in order."""
        self.now += timedelta(milliseconds=1)
        return self.now.isoformat(timespec="microseconds")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        @contextlib.contextmanager
        def open_store(folder: object, *, create: bool = False) -> Iterator[MemoryStore]:
            yield self.store

        for module in (
            harness.api.runs,
            harness.api.audits,
            harness.api.audit_glance,
            harness.api.audit_look,
            harness.api.audit_views,
            harness.api.scores,
            harness.api.stores,
        ):
            patch.setattr(module, "open_store", open_store)
        for module in (harness.api.runs, harness.api.audit_glance):
            patch.setattr(module, "open_provider", self.provider)
        for module in (
            harness.api.audits,
            harness.api.audit_cycle,
            harness.api.audit_glance,
            harness.api.audit_look,
            harness.api.audit_views,
            harness.api.preparation,
            harness.audit.history,
            harness.runner.trial,
        ):
            patch.setattr(module, "utc_now", self.utc_now)


def lines_of(file: Path) -> list[Any]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in file.read_text().splitlines()]
