"""A sealed trial graded again: the same container, other tests, no agent; what was not kept gives no grade."""

from __future__ import annotations

from typing import Any

import pytest

from harness.protocols import Episode
from harness.records.base import sha256_of
from harness.records.grade import Grade
from harness.records.task import Environment, Grading, Task
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason
from harness.runner.journal import Journal
from harness.runner.keeping import pieces_of
from harness.runner.regrading import SealedEvidence, read_seal, regrade_sealed, with_grading
from harness.runner.services import Services
from harness.store.memory import MemoryStore
from harness.store.verify import verify_run
from tests.runner.scenes import SHORT_TEST, answer, carry_out, make_plan, make_services, make_task, tree

pytestmark = pytest.mark.anyio

STRICT = b"grep -q 43 /app/answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"


def judged_by(script: bytes, **changes: Any) -> Task:
    return make_task(grading=Grading(tests=tree(test__sh=script), timeout_s=30.0, **changes))


FRESH = {"environment": GradingEnvironment.FRESH, "artifacts": ("/app/answer",)}


async def regraded(services: Services, recorded: Task, now: Task) -> Grade:
    plan = make_plan(with_grading(recorded, now))
    sealed = read_seal(services.store.events("r1.0000.1"))
    return await regrade_sealed(plan, sealed, services, Journal(services.store, "r1.0000.1.regrade-1"))


@pytest.mark.parametrize("grading", [{}, FRESH])
async def test_other_tests_judge_what_was_sealed_without_the_agent(grading: dict[str, Any]) -> None:
    acted = 0

    async def solve(episode: Episode) -> None:
        nonlocal acted
        acted += 1
        await answer(episode)

    services = make_services(solve)
    task = judged_by(SHORT_TEST, **grading)
    result = await carry_out(services, task)
    before = [event.hash for event in services.store.events("r1.0000.1")]
    again = await regraded(services, task, task)
    strict = await regraded(services, task, judged_by(STRICT, **grading))
    assert (result.outcome, again.outcome, strict.outcome) == (Outcome.PASSED, Outcome.PASSED, Outcome.FAILED)
    assert acted == 1
    assert [event.hash for event in services.store.events("r1.0000.1")] == before
    store = services.store
    assert isinstance(store, MemoryStore)
    report = verify_run(store, "r1")
    assert report.ok
    assert not [notice for notice in report.notices if "no planned trial" in notice]


async def test_what_the_solver_deleted_is_gone_again() -> None:
    async def delete(episode: Episode) -> None:
        await episode.sandbox.exec("rm /app/answer")

    task = make_task(environment=Environment(files=tree(answer="42\n")))
    services = make_services(delete)
    # Files of the task are put on top of the image, so their deletion leaves nothing to tell.
    assert (await carry_out(services, task)).outcome is Outcome.FAILED
    assert (await regraded(services, task, task)).outcome is Outcome.FAILED


async def test_a_container_larger_than_what_is_kept_gives_no_grade_and_says_why() -> None:
    services = make_services(answer)
    services = Services(**{**services.__dict__, "keep_bytes": 100})
    await carry_out(services, make_task())
    grade = await regraded(services, make_task(), make_task())
    assert (grade.outcome, grade.reason) == (Outcome.UNGRADED, Reason.EVIDENCE_MISSING)
    assert "more than 100 bytes" in grade.detail


async def test_an_archive_with_a_secret_is_not_kept_and_says_so() -> None:
    async def leak(episode: Episode) -> None:
        await episode.sandbox.exec("echo 42 s3cr3t-value > /app/answer")

    services = make_services(leak, secrets={"TOKEN": "s3cr3t-value"})
    await carry_out(services, make_task())
    grade = await regraded(services, make_task(), make_task())
    assert grade.reason is Reason.EVIDENCE_MISSING
    assert "/app/answer held a secret" in grade.detail


async def test_a_changed_blob_is_seen_before_anything_is_graded() -> None:
    services = make_services(answer)
    await carry_out(services, make_task())
    store = services.store
    assert isinstance(store, MemoryStore)
    sealed = read_seal(store.events("r1.0000.1"))
    (digest,) = sealed.named("change:").values()
    del store._blobs[digest]
    store._blobs[sha256_of(b"other")] = b"other"
    grade = await regraded(services, make_task(), make_task())
    assert (grade.outcome, grade.reason) == (Outcome.INVALID, Reason.EVIDENCE_DAMAGED)


async def test_services_cannot_be_brought_back() -> None:
    task = make_task(grading=Grading(tests=tree(test__sh=SHORT_TEST), keep_services=True))
    services = make_services(answer)
    await carry_out(services, task)
    assert "processes cannot be kept" in (await regraded(services, task, task)).detail


async def test_artifacts_that_were_never_sealed_cannot_be_carried() -> None:
    task = judged_by(SHORT_TEST, **FRESH)
    services = make_services(answer)
    await carry_out(services, task)
    wider = judged_by(SHORT_TEST, **{**FRESH, "artifacts": ("/app/answer", "/app/notes")})
    grade = await regraded(services, task, wider)
    assert grade.reason is Reason.EVIDENCE_MISSING
    assert "/app/notes was not among" in grade.detail


async def test_nothing_that_is_not_the_sealed_container_is_graded() -> None:
    services = make_services(answer)
    await carry_out(services, make_task())
    sealed = read_seal(services.store.events("r1.0000.1"))
    other = SealedEvidence({**sealed.payload, "changes_count": 7}, sealed.blobs)
    grade = await regrade_sealed(make_plan(make_task()), other, services, Journal(services.store, "x"))
    assert grade.outcome is Outcome.UNGRADED
    assert "could not be brought back" in grade.detail


async def test_a_trial_that_was_not_to_be_graded_is_not_graded_later() -> None:
    async def crash(episode: Episode) -> None:
        raise RuntimeError("before it did anything")

    services = make_services(crash)
    assert (await carry_out(services)).outcome is Outcome.UNGRADED
    assert "not to be graded" in (await regraded(services, make_task(), make_task())).detail
    assert "never sealed" in read_seal([]).problem


def test_the_fewest_pieces_hold_all_changes() -> None:
    changes = ("C /app", "A /app/new", "A /app/new/a", "A /app/new/b/c", "C /app/old", "D /app/gone", "D /app/gone/x",
               "C /etc", "C /etc/hosts", "C /srv")  # fmt: skip
    pieces = pieces_of(changes)
    assert pieces.whole == ("/app/new", "/app/old", "/srv")
    assert pieces.deleted == ("/app/gone",)
