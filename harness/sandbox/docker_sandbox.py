"""A sandbox that is a Docker container (:class:`harness.protocols.Sandbox`)."""

from __future__ import annotations

import anyio.to_thread

from harness.records.errors import SandboxFault
from harness.records.execution import Command, ExecResult, Health, ProcessReport, SandboxFacts, SandboxSpec
from harness.records.task import FileTree
from harness.records.vocabulary import Reason
from harness.sandbox.arguments import refusal
from harness.sandbox.command_run import CommandRun
from harness.sandbox.container import Container
from harness.sandbox.container_files import ContainerFiles
from harness.sandbox.container_processes import ContainerProcesses


class DockerSandbox:
    """A started container. `user` runs the commands that name none."""

    def __init__(
        self,
        container: Container,
        processes: ContainerProcesses,
        files: ContainerFiles,
        spec: SandboxSpec,
        facts: SandboxFacts,
        user: str,
    ) -> None:
        self._container = container
        self._processes = processes
        self._files = files
        self._spec = spec
        self._facts = facts
        self._user = user
        self._running: set[CommandRun] = set()

    @property
    def facts(self) -> SandboxFacts:
        return self._facts

    async def exec(self, command: Command) -> ExecResult:
        if (refused := refusal(command)) is not None:
            return refused
        run = CommandRun(self._container, self._processes, command, command.user or self._user, self._running)
        try:
            return await run.run()
        except SandboxFault as fault:
            if fault.reason != Reason.CONTAINER_LOST:
                raise
            health = await self.health()
            raise SandboxFault(
                f"{fault.message} ({health.detail or 'it runs again'})", reason=fault.reason, place=fault.place
            ) from fault

    async def put(self, tree: FileTree, dest: str, *, replace: bool = False) -> None:
        await self._files.put(tree, dest, replace=replace)

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        return await self._files.read(path, max_bytes=max_bytes)

    async def list(self, path: str) -> tuple[str, ...]:
        return await self._files.list(path)

    async def fetch(self, path: str, *, max_bytes: int) -> bytes:
        return await self._files.fetch(path, max_bytes=max_bytes)

    async def restore(self, archive: bytes, parent: str) -> None:
        await self._files.restore(archive, parent)

    async def changes(self) -> tuple[str, ...]:
        return await self._files.changes()

    async def written(self, *, max_bytes: int) -> bytes | None:
        return await self._files.written(max_bytes=max_bytes)

    async def end_processes(self) -> ProcessReport:
        return await self._processes.end_all()

    async def peak_memory(self) -> int | None:
        return await anyio.to_thread.run_sync(self._processes.peak_memory)

    async def health(self) -> Health:
        """The container's state; its size only where a disk limit asks for it, since measuring costs."""
        inspected = await self._container.inspect()
        state = inspected["State"]
        running = bool(state.get("Running"))
        memory_killed = bool(state.get("OOMKilled")) or bool(self._processes.memory_kills())
        notes = []
        if not running:
            notes.append(f"the container ended with code {state.get('ExitCode')} at {state.get('FinishedAt')}")
            notes += [str(state["Error"])] if state.get("Error") else []
        if memory_killed:
            notes.append(f"a process was killed for memory (limit {self._spec.limits.memory_mb} MiB)")
        if refused := self._processes.forks_refused():
            notes.append(f"{refused} forks were refused (limit {self._spec.limits.pids} processes)")
        return Health(
            running=running,
            memory_killed=memory_killed,
            exit_code=None if running else state.get("ExitCode"),
            disk_bytes=await self._written_bytes() if self._spec.limits.disk_mb else None,
            detail="; ".join(notes),
        )

    async def _written_bytes(self) -> int | None:
        container = self._container
        listed = await container.engine.call(
            "measuring the container",
            lambda client: client.containers(all=True, size=True, filters={"id": container.id}),
            place=container.name,
        )
        return listed[0].get("SizeRw", 0) if listed else None
