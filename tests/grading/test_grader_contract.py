"""Every grader keeps the contract, on the in-memory twin."""

from __future__ import annotations

import pytest

from harness.protocols import GradingCase, SandboxFileError, SandboxProvider
from harness.records.grade import Grade
from harness.records.task import ImagePin
from harness.records.vocabulary import Outcome
from harness.testing import MemorySandboxProvider
from tests.grading.contract import GraderContract
from tests.runner.scenes import DIGEST


class TestOnTheTwin(GraderContract):
    @pytest.fixture
    def provider(self) -> SandboxProvider:
        return MemorySandboxProvider()

    @pytest.fixture
    def pin(self) -> ImagePin:
        return ImagePin(reference="demo:1", digest=DIGEST)


class Gullible:
    """Believes the verdict that it finds."""

    id = "gullible"
    version = "1"

    async def grade(self, case: GradingCase) -> Grade:
        for path in ("/logs/verifier/reward.txt", "/app/answer"):
            try:
                found = await case.sandbox.read(path, max_bytes=100)
            except SandboxFileError:
                continue
            passed = found.strip() in (b"1", b"42")
            outcome = Outcome.PASSED if passed else Outcome.FAILED
            return Grade(grader="gullible@1", outcome=outcome, reward=float(passed))
        return Grade(grader="gullible@1", outcome=Outcome.FAILED, reward=0.0)


@pytest.mark.anyio
async def test_the_contract_catches_a_grader_that_believes_what_it_finds() -> None:
    contract, pin = GraderContract(), ImagePin(reference="demo:1", digest=DIGEST)
    await contract.test_the_answer_decides_and_is_left_as_it_was(Gullible(), MemorySandboxProvider(), pin)
    with pytest.raises(AssertionError):
        await contract.test_whatever_is_left_it_answers_and_does_not_pass(
            Gullible(), MemorySandboxProvider(), pin, "verdicts"
        )
