"""What is believed of a sealed result, and what is no verdict."""

from __future__ import annotations

import anyio
import pytest

from harness.protocols import Episode
from harness.records.task import Grading
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason
from harness.testing import MemorySandboxProvider, Process
from tests.runner.scenes import (
    SHORT_TEST,
    answer,
    carry_out,
    make_services,
    make_task,
    tree,
)

pytestmark = pytest.mark.anyio


async def test_a_background_writer_is_dead_before_grading() -> None:
    def program(process: Process) -> int:
        if "plant" in process.argv[-1]:
            process.spawn("writer", lambda files: files.write("/logs/verifier/reward.txt", b"1"), every_s=0.1)
            return 0
        process.files.write("/logs/verifier/reward.txt", b"0")
        return 0

    async def plant(episode: Episode) -> None:
        await episode.sandbox.exec("plant")
        await anyio.sleep(5)

    result = await carry_out(make_services(plant, provider=MemorySandboxProvider(program)))
    assert result.outcome is Outcome.FAILED
    assert any("removed: /logs/verifier" in flag for flag in result.flags)


async def test_a_planted_verdict_is_flagged_and_not_believed() -> None:
    async def plant(episode: Episode) -> None:
        await episode.sandbox.exec("mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt")

    silent = make_task(grading=Grading(tests=tree(test__sh="true\n")))
    result = await carry_out(make_services(plant), silent)
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.VERDICT_MISSING)
    assert any("found before grading" in flag for flag in result.flags)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo nan > /logs/verifier/reward.txt", Reason.VERDICT_NOT_FINITE),
        ("echo yes > /logs/verifier/reward.txt", Reason.VERDICT_MALFORMED),
        ("printf '{}' > /logs/verifier/reward.json", Reason.VERDICT_EMPTY),
        ("exit 3", Reason.GRADER_CRASHED),
        ("true", Reason.VERDICT_MISSING),
        ("echo before; sleep 60; echo 1 > /logs/verifier/reward.txt", Reason.GRADER_TIMEOUT),
        ("rm -rf /logs/verifier; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt", Reason.VERDICT_TAMPERED),
    ],
)
async def test_no_usable_verdict_is_ungraded_with_its_reason(script: str, reason: Reason) -> None:
    services = make_services(answer)
    result = await carry_out(services, make_task(grading=Grading(tests=tree(test__sh=script + "\n"), timeout_s=30.0)))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, reason)
    grade = next(iter(services.store.events("r1.0000.1", ["grade"])))
    if "before" in script:
        assert services.store.blob(grade.blobs["stdout"]) == b"before\n"


async def test_fresh_grading_sees_the_artifacts_and_nothing_else() -> None:
    def program(process: Process) -> int:
        if process.argv[-1].endswith("test.sh"):
            ok = "/app/answer" in process.files and "/app/other" not in process.files
            process.files.write("/logs/verifier/reward.txt", b"1" if ok else b"0")
        else:
            process.files.write("/app/answer", b"\xff\x00 bytes")
            process.files.write("/app/other", b"left behind")
        return 0

    task = make_task(
        grading=Grading(
            environment=GradingEnvironment.FRESH, artifacts=("/app/answer",), tests=tree(test__sh=SHORT_TEST)
        )
    )
    provider = MemorySandboxProvider(program)
    result = await carry_out(make_services(answer, provider=provider), task)
    assert result.outcome is Outcome.PASSED
    assert provider.sandboxes[1].files.node("/app/answer").content == b"\xff\x00 bytes"  # type: ignore[union-attr]
