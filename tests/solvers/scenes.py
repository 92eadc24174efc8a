"""A small stage for solvers: an episode whose sandbox is a plain function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocols import Episode, Remaining, SolverModel
from harness.records.execution import Captured, ExecResult
from harness.records.task import Budget, FileTree

Run = Callable[[str | Sequence[str]], ExecResult]


def output(text: str | bytes = "", error: str = "", **changes: Any) -> ExecResult:
    """The result of a command that printed this."""
    out = text if isinstance(text, bytes) else text.encode()
    values: dict[str, Any] = {
        "exit_code": 0,
        "stdout": Captured(head=out, seen_bytes=len(out)),
        "stderr": Captured(head=error.encode(), seen_bytes=len(error.encode())),
        **changes,
    }
    return ExecResult(**values)


@dataclass
class StageSandbox:
    """A :class:`harness.protocols.SolverSandbox` that writes down what it is asked."""

    run: Run = lambda command: output("done\n")
    commands: list[str | Sequence[str]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    trees: dict[str, FileTree] = field(default_factory=dict)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        self.commands.append(command)
        self.asked.append({"timeout_s": timeout_s, "env": dict(env or {}), "workdir": workdir, "stdin": stdin})
        return self.run(command)

    async def put(self, tree: FileTree, dest: str) -> None:
        self.trees[dest] = tree

    async def read(self, path: str, *, max_bytes: int = 1_048_576) -> bytes:
        raise NotImplementedError


def make_episode(sandbox: StageSandbox, model: SolverModel | None = None, **changes: Any) -> Episode:
    """An episode with nothing unusual about it."""
    values: dict[str, Any] = {
        "instruction": "Write 42 to /app/answer.",
        "workdir": "/app",
        "seed": 0,
        "sandbox": sandbox,
        "remaining": lambda: Remaining(wall_s=99.6, tokens=1234, steps=7, cost_usd=0.25),
        "budget": Budget(),
        "model": model,
        **changes,
    }
    return Episode(**values)
