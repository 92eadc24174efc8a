"""Small worlds for runner tests: tasks, solvers, models and services on the in-memory twins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from harness.billing.account import PriceOf, accountant
from harness.grading.script import ScriptGrader
from harness.protocols import ChatModel, Episode, OnAttempt, Solver
from harness.records.base import digest_of
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.grade import TrialResult
from harness.records.run import AdaptiveConfig, RunConfig, RunRow
from harness.records.task import Budget, Environment, FileTree, Grading, ImagePin, Limits, Solution, Task, TreeFile
from harness.records.trial import SolverSpec, TrialPlan, trial_id
from harness.records.usage import Usage
from harness.runner.redaction import Redactor
from harness.runner.services import Services
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore
from harness.store.verify import verify_trial
from harness.testing import MemorySandboxProvider

DIGEST = "sha256:" + "ab" * 32
TEST_SCRIPT = b"""\
if [ -f /app/answer ] && grep -q 42 /app/answer
then
echo 1 > /logs/verifier/reward.txt
else
echo 0 > /logs/verifier/reward.txt
fi
"""
SHORT_TEST = b"grep -q 42 /app/answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
Script = Callable[[Episode], Awaitable[None]]


def tree(**files: bytes | str) -> FileTree:
    """A file tree; `__` in a name stands for a dot."""
    return FileTree(
        files=tuple(
            TreeFile(path=name.replace("__", "."), content=body if isinstance(body, bytes) else body.encode())
            for name, body in files.items()
        )
    )


def make_task(task_id: str = "t", **changes: Any) -> Task:
    """A task that passes when /app/answer holds 42."""
    values: dict[str, Any] = {
        "id": task_id,
        "family": "demo",
        "instruction": "Write 42 to /app/answer.",
        "image": ImagePin(reference="demo:1", digest=DIGEST),
        "environment": Environment(),
        "budget": Budget(wall_s=60.0),
        "limits": Limits(),
        "solution": Solution(files=tree(solve__sh="echo 42 > /app/answer\n")),
        "grading": Grading(tests=tree(test__sh=SHORT_TEST), timeout_s=30.0),
        **changes,
    }
    return Task(**values)


@dataclass
class Scripted:
    """A solver made of one coroutine function."""

    script: Script
    name: str = "scripted"
    isolation: str = "inline"

    async def run(self, episode: Episode) -> None:
        await self.script(episode)


async def answer(episode: Episode) -> None:
    """Solve the task."""
    await episode.sandbox.exec("echo 42 > /app/answer")


async def nothing(episode: Episode) -> None:
    """Do nothing."""


@dataclass
class FakeModel:
    """Gives the replies it was made with, in order; the last again and again. An exception is raised instead."""

    replies: list[ChatReply | Exception]
    name: str = "fake-1"
    provider: str = "fake"
    asked: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest, on_attempt: OnAttempt) -> ChatReply:
        self.asked.append(request)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, Exception):
            await on_attempt(Attempt(number=1, status=500, error=str(reply), charged=False))
            raise reply
        await on_attempt(Attempt(number=1, status=200, response_id=reply.response_id, usage=reply.usage, charged=True))
        return reply


def reply(total: int = 100, *, usage: bool = True, response_id: str | None = None) -> ChatReply:
    """A reply that used `total` tokens, a tenth of them output."""
    used = Usage(input=total - total // 10, output=total // 10) if usage else None
    return ChatReply(
        content="ok",
        usage=used,
        response_id=response_id,
        model="fake-1",
        message={"role": "assistant", "content": "ok"},
    )


def priced(model: str, usage: Usage, tier: str | None) -> float | None:
    """A dollar per million tokens."""
    return usage.total / 1e6


def make_services(
    solver: Solver | Script = answer,
    *,
    provider: MemorySandboxProvider | None = None,
    store: MemoryStore | None = None,
    model: ChatModel | None = None,
    price: PriceOf = priced,
    secrets: dict[str, str] | None = None,
) -> Services:
    """Services on twins, with the real grader and the real accounting."""
    made = solver if isinstance(solver, Solver) else Scripted(solver)
    return Services(
        provider=provider or MemorySandboxProvider(),
        store=store or MemoryStore(),
        solver=lambda spec: made,
        grader=lambda reference: ScriptGrader(),
        account=accountant(price),
        price=price,
        model=model,
        redactor=Redactor(secrets),
    )


def make_plan(task: Task, run: str = "r1", **changes: Any) -> TrialPlan:
    """The plan of the first attempt at the first slot."""
    values: dict[str, Any] = {
        "run": run,
        "trial": trial_id(run, 0, 1),
        "slot": 0,
        "task": task,
        "solver": SolverSpec(name="scripted"),
        "budget": task.budget,
        **changes,
    }
    return TrialPlan(**values)


def make_row(tasks: list[Task], run: str = "r1", **changes: Any) -> RunRow:
    """A stored run over tasks."""
    values: dict[str, Any] = {"solver": SolverSpec(name="scripted"), **changes}
    config = RunConfig(suite="demo", suite_version=DIGEST, tasks=tuple(task.id for task in tasks), **values)
    return RunRow(run=run, created="2026-01-01T00:00:00+00:00", config=config, config_digest=digest_of(config))


def adaptive_config(stop: int, **changes: Any) -> AdaptiveConfig:
    return AdaptiveConfig(stop=stop, **changes)


async def carry_out(services: Services, task: Task | None = None, **plan: Any) -> TrialResult:
    """Plan and run one trial; its evidence must hold whatever happened."""
    task = task or make_task()
    made = make_plan(task, **plan)
    services.store.create_run(make_row([task]))
    services.store.plan([made])
    trial = Trial(made, services)
    trial.journal.note("trial.state", {"to": "planned"})
    result = await trial.run()
    store = services.store
    assert isinstance(store, MemoryStore)
    assert trial.closing is not None
    store.append(
        [
            trial.journal.draft("x", {}).model_copy(
                update={"stream": "r1", "kind": trial.closing[0], "payload": trial.closing[1]}
            )
        ]
    )
    report = verify_trial(store, made.trial)
    assert report.ok, report.problems
    provider = services.provider
    assert isinstance(provider, MemorySandboxProvider)
    assert not provider.live
    return result
