"""What every grader promises, whatever a solver left it to judge.

The task of all cases: /app/answer must hold 42. A grader is asked on a sandbox of its own, sealed, as the runner does.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import plugins
from harness.protocols import Grader, GradingCase, Sandbox, SandboxProvider
from harness.records.base import sha256_of
from harness.records.execution import Command, SandboxSpec
from harness.records.grade import Grade
from harness.records.task import FileTree, Grading, ImagePin, Limits, Task, TreeFile
from harness.records.vocabulary import Outcome
from tests.runner.scenes import SHORT_TEST, make_task, tree

OWN = f"{Path(__file__).with_name('answer_grader.py')}:AnswerGrader"
GRADERS = (*plugins.names("graders"), OWN)
"""Every registered grader, and one from a user's file: the contract is for all of them."""

ANSWERS: Mapping[bytes, Outcome] = {
    b"42\n": Outcome.PASSED,
    b"41\n": Outcome.FAILED,
    b"": Outcome.FAILED,
    b"\xff\x00\xfe" * 50: Outcome.FAILED,
}
LEFT_BEHIND: Mapping[str, str] = {
    "nothing": "true",
    "a folder": "mkdir -p /app/answer",
    "a ring of links": "ln -s answer /app/answer",
    "verdicts": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json",
    "tests of its own": "mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh",
    "links for folders": "mkdir -p /tmp/x; ln -s /tmp/x /logs; ln -s /tmp/x /tests",
    "no workdir": "rm -rf /app",
}


@dataclass
class Kept:
    """Where a case keeps its evidence."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def keep(self, data: bytes) -> str:
        digest = sha256_of(data)
        self.blobs[digest] = data
        return digest

    def note(self, kind: str, payload: Mapping[str, Any]) -> None:
        self.notes.append((kind, payload))


class GraderContract:
    """Subclass it with the fixtures `provider` and `pin`."""

    @pytest.fixture(params=GRADERS, ids=lambda name: name.rpartition("/")[2])
    def grader(self, request: pytest.FixtureRequest) -> Grader:
        made: Grader = plugins.load("graders", request.param)()
        return made

    def task(self, pin: ImagePin, grader: Grader) -> Task:
        reference = f"{grader.id}@{grader.version}"
        grading = Grading(grader=reference, tests=tree(test__sh=SHORT_TEST), timeout_s=20.0)
        return make_task(image=pin, grading=grading, limits=Limits(memory_mb=128, pids=64))

    @asynccontextmanager
    async def left(self, provider: SandboxProvider, task: Task, do: str) -> AsyncIterator[Sandbox]:
        """A sealed sandbox in which a solver did something."""
        async with self.opened(provider, task) as sandbox:
            await sandbox.exec(Command(argv=("sh", "-c", do), timeout_s=20.0, workdir="/"))
            await sandbox.end_processes()
            yield sandbox

    @asynccontextmanager
    async def opened(self, provider: SandboxProvider, task: Task) -> AsyncIterator[Sandbox]:
        wanted = SandboxSpec(run="graders", trial="graders/1", image=task.image, limits=task.limits, workdir="/app")
        async with provider.open(wanted) as sandbox:
            yield sandbox

    async def grade(
        self, grader: Grader, provider: SandboxProvider, task: Task, sandbox: Sandbox
    ) -> tuple[Grade, Kept]:
        """Ask it, and check what holds of every answer."""
        kept = Kept()
        pristine = lambda: self.opened(provider, task)  # noqa: E731
        case = GradingCase(task, sandbox, "ab" * 16, kept.keep, kept.note, pristine)
        with anyio.fail_after(task.grading.timeout_s + 30):
            grade = await grader.grade(case)
        assert grade.grader == task.grading.grader
        assert grade.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.UNGRADED)
        assert (grade.reason is not None) or grade.outcome.graded
        assert grade.reason is None or grade.detail
        assert grade.outcome is not Outcome.PASSED or grade.reason is None
        assert grade.reward is None or math.isfinite(grade.reward)
        assert grade.outcome is not Outcome.PASSED or (grade.reward or 0.0) >= task.grading.pass_at - 1e-6
        assert set(grade.blobs.values()) <= kept.blobs.keys()
        assert (await sandbox.end_processes()).found == 0  # nothing of the grader's runs on
        return grade, kept

    def test_it_is_named_with_a_version(self, grader: Grader) -> None:
        assert re.fullmatch(r"[^@\s]+", grader.id)
        assert re.fullmatch(r"[^@\s]+", grader.version)

    @pytest.mark.anyio
    async def test_the_answer_decides_and_is_left_as_it_was(
        self, grader: Grader, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        task = self.task(pin, grader)
        async with self.left(provider, task, "true") as sandbox:
            for answer, outcome in ANSWERS.items():
                await sandbox.put(FileTree(files=(TreeFile(path="answer", content=answer),)), "/app")
                grade, _ = await self.grade(grader, provider, task, sandbox)
                assert (grade.outcome, grade.reason) == (outcome, None), answer
                assert await sandbox.read("/app/answer", max_bytes=1000) == answer
            again, _ = await self.grade(grader, provider, task, sandbox)
            assert (again.outcome, again.reward, again.criteria) == (grade.outcome, grade.reward, grade.criteria)

    @pytest.mark.anyio
    @pytest.mark.parametrize("state", LEFT_BEHIND)
    async def test_whatever_is_left_it_answers_and_does_not_pass(
        self, grader: Grader, provider: SandboxProvider, pin: ImagePin, state: str
    ) -> None:
        task = self.task(pin, grader)
        async with self.left(provider, task, LEFT_BEHIND[state]) as sandbox:
            grade, _ = await self.grade(grader, provider, task, sandbox)
        assert grade.outcome is Outcome.FAILED
