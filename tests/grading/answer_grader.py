"""A grader of one's own, in one file: `grader = "path/to/answer_grader.py:AnswerGrader@1"` names it."""

from __future__ import annotations

from harness.protocols import GradingCase, SandboxFileError
from harness.records.grade import Grade
from harness.records.vocabulary import Outcome


class AnswerGrader:
    """Passes when /app/answer is 42: reads the file from outside, and runs nothing in the container."""

    id = "answer"
    version = "1"

    async def grade(self, case: GradingCase) -> Grade:
        try:
            said = await case.sandbox.read("/app/answer", max_bytes=1000)
        except SandboxFileError as error:
            return self._grade(case, 0.0, f"/app/answer: {error.problem}")
        return self._grade(case, float(said.strip() == b"42"), f"/app/answer: {said[:40]!r}")

    def _grade(self, case: GradingCase, reward: float, detail: str) -> Grade:
        return Grade(
            grader=f"{self.id}@{self.version}",
            outcome=Outcome.PASSED if reward >= case.task.grading.pass_at else Outcome.FAILED,
            reward=reward,
            detail=detail,
            blobs={"answer": case.keep(detail.encode())},
        )
