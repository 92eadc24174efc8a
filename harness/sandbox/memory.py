"""The in-memory twin of the Docker sandbox: for tests of everything that uses a sandbox.

Time is anyio's, so that on trio's virtual clock an hour costs nothing. Commands are run by a *program*, a plain
function (or coroutine) that gets a :class:`harness.sandbox.memory_process.Process`; the default is a tiny shell
(:func:`harness.sandbox.tiny_shell.tiny_shell`), enough for `solve.sh` and `test.sh` of a few lines::

    def program(process: Process) -> int:
        process.files["/app/answer"] = b"42\\n"
        process.write(b"done\\n")
        return 0

    provider = MemorySandboxProvider(program, troubles=[Trouble("exec", nth=2, fault=lost())])
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import anyio
import structlog

from harness.protocols import SandboxFileError
from harness.records.base import sha256_of
from harness.records.errors import SandboxFault
from harness.records.execution import (
    Command,
    ExecResult,
    Health,
    ImageFacts,
    Leftover,
    ProcessReport,
    SandboxFacts,
    SandboxSpec,
)
from harness.records.task import FileTree, ImagePin
from harness.records.vocabulary import Reason
from harness.sandbox.arguments import refusal
from harness.sandbox.capture import StreamCapture
from harness.sandbox.memory_files import MemoryFiles
from harness.sandbox.memory_process import Background, Process, Program
from harness.sandbox.ownership import this_process
from harness.sandbox.tiny_shell import tiny_shell

log = structlog.get_logger(__name__)

Call = Literal[
    "open",
    "exec",
    "put",
    "read",
    "list",
    "fetch",
    "restore",
    "end_processes",
    "health",
    "changes",
    "remove",
    "image",
    "leftovers",
]


def lost(reason: Reason = Reason.CONTAINER_LOST) -> SandboxFault:
    """A fault to put into a :class:`Trouble`."""
    return SandboxFault("the simulated engine failed as told", reason=reason)


@dataclass
class Trouble:
    """Something that goes wrong at the `nth` matching call (counted from 1) and at the `times - 1` after it.

    `trial` is a pattern over trial ids ("*/2" …), `purpose` one of the spec's. The call is delayed by `delay_s`,
    then hangs until it is cancelled, or raises `fault`, or goes on. `dies`: the container is not running from then on.
    """

    at: Call
    nth: int = 1
    times: float = 1
    fault: SandboxFault | None = None
    hang: bool = False
    delay_s: float = 0.0
    dies: bool = False
    trial: str = "*"
    purpose: str = "*"
    seen: int = field(default=0, init=False)

    def strikes(self, at: Call, trial: str, purpose: str) -> bool:
        """Count a call, and say whether it is one that goes wrong."""
        if at != self.at or not fnmatch.fnmatch(trial, self.trial) or not fnmatch.fnmatch(purpose, self.purpose):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class MemorySandbox:
    """One sandbox of the twin. Tests may look at `files`, `commands`, `processes` and `removed` at any time."""

    def __init__(self, provider: MemorySandboxProvider, spec: SandboxSpec, facts: SandboxFacts) -> None:
        self.spec = spec
        self.files = MemoryFiles(dict(provider.image_files))
        self.files.make_folder(spec.workdir)
        self.commands: list[Command] = []
        self.results: list[ExecResult] = []
        self.running = True
        self.removed = False
        self.memory_killed = False
        self.peak_memory_bytes: int | None = None
        self._provider = provider
        self._facts = facts
        self._processes: list[Background] = []
        self._image = self.files.snapshot()

    @property
    def facts(self) -> SandboxFacts:
        return self._facts

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the processes that commands left running."""
        return tuple(process.name for process in self._processes)

    async def exec(self, command: Command) -> ExecResult:
        await self._enter("exec")
        self.commands.append(command)
        if (refused := refusal(command)) is not None:
            return refused
        half = command.output_bytes - command.output_bytes // 2
        process = Process(
            command=command,
            files=self.files,
            env={**self.spec.env, **command.env},
            workdir=command.workdir or self.spec.workdir,
            user=command.user or self.spec.user,
            stdout=StreamCapture(half, command.output_bytes // 2),
            stderr=StreamCapture(half, command.output_bytes // 2),
            number=len(self.commands),
            background=self._processes,
        )
        started_s = anyio.current_time()
        exit_code: int | None = None
        ended = 0
        try:
            with anyio.move_on_after(command.timeout_s) as deadline:
                answer = self._provider.program(process)
                exit_code = answer if isinstance(answer, int) else await answer
        except anyio.get_cancelled_exc_class():
            self._end([background for background in self._processes if background.owner == process.number])
            raise
        self._catch_up()
        own = [background for background in self._processes if background.owner == process.number]
        if deadline.cancelled_caught:
            exit_code, ended = None, 1 + self._end(own)
        self.memory_killed |= process.memory_killed
        used = self.spec.limits.memory_mb * 1024 * 1024 if process.memory_killed else process.memory_bytes
        self.peak_memory_bytes = max(self.peak_memory_bytes or 0, used) or None
        result = ExecResult(
            exit_code=exit_code,
            stdout=process.stdout.captured(),
            stderr=process.stderr.captured(),
            duration_s=anyio.current_time() - started_s,
            timed_out=deadline.cancelled_caught,
            memory_killed=process.memory_killed,
            stdio_held_open=not deadline.cancelled_caught and any(background.holds_stdio for background in own),
            processes_ended=ended,
        )
        self.results.append(result)
        return result

    async def put(self, tree: FileTree, dest: str, *, replace: bool = False) -> None:
        await self._enter("put")
        self.files.put(tree, dest, replace=replace)

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        await self._enter("read")
        node = self.files.node(path)
        if node is None:
            raise SandboxFileError(path, "missing")
        if node.kind != "file":
            raise SandboxFileError(path, "not a file")
        if len(node.content) > max_bytes:
            raise SandboxFileError(path, "too large")
        return node.content

    async def list(self, path: str) -> tuple[str, ...]:
        await self._enter("list")
        return self.files.below(path)

    async def fetch(self, path: str, *, max_bytes: int) -> bytes:
        await self._enter("fetch")
        return self.files.pack(path, max_bytes=max_bytes)

    async def restore(self, archive: bytes, parent: str) -> None:
        await self._enter("restore")
        self.files.unpack(archive, parent)

    async def end_processes(self) -> ProcessReport:
        await self._enter("end_processes")
        found = self._end(tuple(self._processes))
        return ProcessReport(found=found, method="memory" if found else "none", duration_s=0.0)

    async def peak_memory(self) -> int | None:
        return self.peak_memory_bytes

    async def health(self) -> Health:
        await self._enter("health", alive=False)
        written = sum(
            len(node.content) for path, node in self.files.snapshot().items() if self._image.get(path) != node
        )
        return Health(
            running=self.running,
            memory_killed=self.memory_killed,
            exit_code=None if self.running else 137,
            disk_bytes=written,
            detail="" if self.running else "the simulated container is not running",
        )

    async def changes(self) -> tuple[str, ...]:
        await self._enter("changes", alive=False)
        now = self.files.snapshot()
        found = {path: "D" for path in self._image if path not in now}
        found |= {path: "A" if path not in self._image else "C" for path in now if self._image.get(path) != now[path]}
        return tuple(f"{kind} {path}" for path, kind in sorted(found.items()))

    async def written(self, *, max_bytes: int) -> bytes | None:
        return None  # there are no layers: what changed is fetched path by path

    async def _enter(self, call: Call, *, alive: bool = True) -> None:
        await self._provider.meet(call, self.spec, self)
        if alive and not self.running:
            raise SandboxFault(
                "the simulated container is not running", reason=Reason.CONTAINER_LOST, place=self.facts.name
            )
        self._catch_up()

    def _catch_up(self) -> None:
        """Let the background processes do what they did up to now."""
        now_s = anyio.current_time()
        for process in self._processes:
            due = math.floor((now_s - process.next_s) / process.every_s) + 1 if now_s >= process.next_s else 0
            for _ in range(due):
                process.tick(self.files)
            process.next_s += due * process.every_s

    def _end(self, processes: Sequence[Background]) -> int:
        self._catch_up()
        self._processes[:] = [process for process in self._processes if process not in processes]
        return len(processes)


class MemorySandboxProvider:
    """Opens in-memory sandboxes. `sandboxes` holds all that were ever opened, `calls` what was asked, in order.

    With `images` only those can be opened; without, any pin can. `digest` is the image that a container is found to
    have been started from; by default what the pin says.
    """

    name = "memory"

    def __init__(
        self,
        program: Program = tiny_shell,
        *,
        troubles: Iterable[Trouble] = (),
        image_files: Mapping[str, bytes] | None = None,
        images: Iterable[ImageFacts] | None = None,
        digest: str | None = None,
        platform: str = "linux/amd64",
    ) -> None:
        self.program = program
        self.troubles = list(troubles)
        self.image_files = dict(image_files or {})
        self.images = None if images is None else tuple(images)
        self.digest = digest
        self.platform = platform
        self.sandboxes: list[MemorySandbox] = []
        self.calls: list[tuple[Call, str]] = []
        self._numbers = itertools.count(1)

    @property
    def live(self) -> tuple[MemorySandbox, ...]:
        """Sandboxes that were not removed: none, once everything is closed."""
        return tuple(sandbox for sandbox in self.sandboxes if not sandbox.removed)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[MemorySandbox]:
        await self.meet("open", spec)
        sandbox = MemorySandbox(self, spec, await self._start(spec))
        self.sandboxes.append(sandbox)
        try:
            yield sandbox
        finally:
            with anyio.move_on_after(30, shield=True) as deadline:
                try:
                    await self.meet("remove", spec)
                    sandbox.removed = True
                except SandboxFault as fault:
                    log.warning("sandbox.not_removed", name=sandbox.facts.name, error=str(fault))
            if deadline.cancelled_caught:
                log.warning("sandbox.not_removed", name=sandbox.facts.name, error="removal took too long")

    async def image(self, pin: ImagePin) -> ImageFacts | None:
        await self._struck("image", "", "")
        return self._held(pin)

    async def leftovers(self) -> tuple[Leftover, ...]:
        await self._struck("leftovers", "", "")
        return tuple(
            Leftover(
                id=sandbox.facts.id,
                kind="container",
                name=sandbox.facts.name,
                run=sandbox.spec.run,
                trial=sandbox.spec.trial,
                owner=this_process(),
            )
            for sandbox in self.live
        )

    async def remove(self, leftover: Leftover) -> None:
        await self._struck("remove", leftover.trial or "", "")
        for sandbox in self.live:
            if sandbox.facts.id == leftover.id:
                sandbox.removed = True

    async def close(self) -> None:
        """Nothing to let go of."""

    async def meet(self, call: Call, spec: SandboxSpec, sandbox: MemorySandbox | None = None) -> None:
        """Record a call and let it meet the trouble that waits for it."""
        await self._struck(call, spec.trial, spec.purpose, sandbox)

    async def _struck(self, call: Call, trial: str, purpose: str, sandbox: MemorySandbox | None = None) -> None:
        self.calls.append((call, trial))
        await anyio.lowlevel.checkpoint()
        for trouble in [trouble for trouble in self.troubles if trouble.strikes(call, trial, purpose)]:
            await anyio.sleep(trouble.delay_s)
            if trouble.dies and sandbox is not None:
                sandbox.running = False
            if trouble.hang:
                await anyio.sleep_forever()
            if trouble.fault is not None:
                raise trouble.fault

    def _held(self, pin: ImagePin) -> ImageFacts | None:
        if self.images is None:
            digest = pin.digest or sha256_of(pin.reference.encode())
            named = (pin.locator,) if pin.repository and pin.locator else ()
            return ImageFacts(digest=digest, repo_digests=named, platform=pin.platform or self.platform)
        for image in self.images:
            if pin.locator in (image.digest, *image.repo_digests):
                return image
        return None

    async def _start(self, spec: SandboxSpec) -> SandboxFacts:
        held = self._held(spec.image)
        if held is None or spec.image.digest is None:
            raise SandboxFault("the image is not there", reason=Reason.IMAGE_MISSING, place=spec.image.reference)
        if self.digest is not None and self.digest != held.digest:
            raise SandboxFault(
                f"the container was started from {self.digest}, not {held.digest}",
                reason=Reason.IMAGE_MISMATCH,
                place=spec.image.reference,
            )
        number = next(self._numbers)
        return SandboxFacts(
            id=f"{number:064x}",
            name=f"assay-{spec.run}-{spec.trial}-{number}",
            image_digest=held.digest,
            repo_digest=held.repo_digests[0] if held.repo_digests else None,
            platform=held.platform,
            engine="memory 1",
            enforced=dict.fromkeys(("cpus", "memory", "pids", "disk", "network", "capabilities"), "simulated"),
        )
