"""One trial on the in-memory twins, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest

from harness.protocols import Episode, OnAttempt, Solver
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault
from harness.records.grade import TrialResult
from harness.records.task import Budget, Environment, Grading, Limits, Task
from harness.records.trial import SolverSpec
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason, StopReason
from harness.runner.services import Services
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore
from harness.store.verify import verify_trial
from harness.testing import MemorySandboxProvider, Process, Trouble, lost
from tests.runner.scenes import (
    SHORT_TEST,
    FakeModel,
    Scripted,
    answer,
    make_plan,
    make_row,
    make_services,
    make_task,
    nothing,
    reply,
    tree,
)

pytestmark = pytest.mark.anyio


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


async def test_a_solution_passes_and_nothing_fails() -> None:
    assert (await carry_out(make_services(answer))).outcome is Outcome.PASSED
    failed = await carry_out(make_services(nothing))
    assert (failed.outcome, failed.stop, failed.reason) == (Outcome.FAILED, StopReason.FINISHED, None)
    assert failed.cost_usd == 0.0


async def test_wall_time_ends_the_interaction_and_what_is_there_is_graded() -> None:
    async def late(episode: Episode) -> None:
        await anyio.sleep(61)
        await episode.sandbox.exec("echo 42 > /app/answer")

    result = await carry_out(make_services(late))
    assert (result.outcome, result.stop) == (Outcome.FAILED, StopReason.TIME)
    assert result.seconds == pytest.approx(60, abs=0.01)

    async def early(episode: Episode) -> None:
        await answer(episode)
        await anyio.sleep_forever()

    result = await carry_out(make_services(early))
    assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.TIME)


async def test_a_command_that_would_finish_later_never_scores() -> None:
    async def slow(episode: Episode) -> None:
        result = await episode.sandbox.exec("sleep 20; echo 42 > /app/answer", timeout_s=5)
        assert result.timed_out

    result = await carry_out(make_services(slow))
    assert (result.outcome, result.stop) == (Outcome.FAILED, StopReason.FINISHED)


async def test_a_command_is_cut_by_the_wall_budget() -> None:
    async def slow(episode: Episode) -> None:
        await episode.sandbox.exec("sleep 1000")

    result = await carry_out(make_services(slow))
    assert result.stop in (StopReason.TIME, StopReason.FINISHED)
    assert result.seconds <= 60.2


@pytest.mark.parametrize("asked", [-1.0, float("nan"), 1e12, 0.0])
async def test_a_models_own_limits_are_clamped(asked: float) -> None:
    async def greedy(episode: Episode) -> None:
        await episode.sandbox.exec("sleep 1000", timeout_s=asked)

    task = make_task(limits=Limits(command_s=7.0))
    services = make_services(greedy)
    await carry_out(services, task)
    provider = services.provider
    assert isinstance(provider, MemorySandboxProvider)
    assert provider.sandboxes[0].commands[0].timeout_s == 7.0


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


@pytest.mark.parametrize(
    "raised",
    [TimeoutError("mine"), RuntimeError("boom"), SystemExit(3), KeyboardInterrupt(), ProviderFault("not yours")],
)
async def test_a_solvers_own_exception_is_its_error_whatever_its_class(raised: BaseException) -> None:
    async def crash(episode: Episode) -> None:
        raise raised

    result = await carry_out(make_services(crash))
    assert (result.stop, result.outcome, result.reason) == (
        StopReason.SOLVER_ERROR,
        Outcome.UNGRADED,
        Reason.SOLVER_ERROR,
    )
    assert type(raised).__name__ in result.detail
    assert result.stop_detail == result.detail  # why it stopped is why there is no grade


async def test_a_crash_after_acting_keeps_the_exception_beside_the_grade() -> None:
    await crash_after_acting("inline")


async def crash_after_acting(isolation: str) -> None:
    """What must be told of a solver that acts, then raises, wherever it runs."""

    async def crash(episode: Episode) -> None:
        await episode.sandbox.exec("echo 41 > /app/answer")
        raise KeyError("lost\nand found")

    store = MemoryStore()
    task = make_task(grading=Grading(tests=tree(test__sh="echo '{}' > /logs/verifier/reward.json\n")))
    result = await carry_out(make_services(Scripted(crash, isolation=isolation), store=store), task)
    assert (result.stop, result.reason) == (StopReason.SOLVER_ERROR, Reason.VERDICT_EMPTY)
    assert result.stop_detail == "KeyError: 'lost\\nand found'"
    assert result.detail
    assert "KeyError" not in result.detail
    (ended,) = store.events(result.trial, ["interaction.ended"])
    assert "raise KeyError" in ended.payload["error"]
    assert "SolverCrash" not in ended.payload["error"]  # the solver's own traceback, not our wrapping


async def test_the_limit_that_was_met_is_told_beside_the_grade() -> None:
    async def busy(episode: Episode) -> None:
        while True:
            await episode.sandbox.exec("echo 42 > /app/answer")

    result = await carry_out(make_services(busy), make_task(budget=Budget(steps=2)))
    assert (result.stop, result.outcome) == (StopReason.STEPS, Outcome.PASSED)
    assert (result.stop_detail, result.detail) == ("2 of 2 steps taken", "")


async def test_an_exception_that_cannot_be_told_is_still_told_of() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    async def crash(episode: Episode) -> None:
        raise Mute

    result = await carry_out(make_services(crash))
    assert (result.stop, result.stop_detail) == (
        StopReason.SOLVER_ERROR,
        "Mute: (its text cannot be had: ValueError)",
    )


@pytest.mark.parametrize("raised", [ValueError("cannot"), SystemExit("cannot")])
async def test_a_solver_that_cannot_be_made_is_its_own_error(raised: BaseException) -> None:
    def make(spec: SolverSpec) -> Solver:
        raise raised

    store = MemoryStore()
    result = await carry_out(replace(make_services(nothing, store=store), solver=make))
    assert (result.stop, result.outcome, result.reason) == (
        StopReason.SOLVER_ERROR,
        Outcome.UNGRADED,
        Reason.SOLVER_ERROR,
    )
    assert (result.detail, result.seconds) == (f"{type(raised).__name__}: cannot", 0.0)
    (unmade,) = store.events(result.trial, ["solver.unmade"])
    assert "raise raised" in unmade.payload["error"]


async def test_an_overshooting_reply_is_kept_booked_and_ends_the_trial() -> None:
    async def chatty(episode: Episode) -> None:
        assert episode.model is not None
        while True:
            await episode.model.chat([{"role": "user", "content": "go"}])

    model = FakeModel([reply(990), reply(200)])
    services = make_services(chatty, model=model)
    result = await carry_out(services, make_task(budget=Budget(tokens=1000)), model="fake-1")
    assert result.stop is StopReason.TOKENS
    assert result.usage is not None
    assert result.usage.total == 1190
    assert result.outcome is Outcome.FAILED
    assert model.asked[1].max_tokens == 10
    calls = list(services.store.events("r1.0000.1", ["model.call"]))
    assert len(calls) == 2
    assert result.cost_usd == pytest.approx(1190e-6)


async def test_budgets_stop_a_solver_that_swallows_everything() -> None:
    async def deaf(episode: Episode) -> None:
        for _ in range(50):
            with contextlib.suppress(Exception):
                await episode.sandbox.exec("echo x >> /app/log")

    services = make_services(deaf)
    result = await carry_out(services, make_task(budget=Budget(steps=3)))
    assert (result.stop, result.steps) == (StopReason.STEPS, 3)
    provider = services.provider
    assert isinstance(provider, MemorySandboxProvider)
    assert len([c for c in provider.sandboxes[0].commands if "echo x" in c.argv[-1]]) == 3


@pytest.mark.parametrize("budget", [Budget(cost_usd=1.0), Budget(tokens=10_000)])
async def test_an_account_that_cannot_be_kept_stops_the_trial(budget: Budget) -> None:
    async def chatty(episode: Episode) -> None:
        assert episode.model is not None
        while True:
            await episode.model.chat([{"role": "user", "content": "go"}])

    services = make_services(chatty, model=FakeModel([reply(usage=False)]))
    result = await carry_out(services, make_task(budget=budget), model="fake-1")
    assert result.stop is (StopReason.COST if budget.cost_usd else StopReason.TOKENS)
    assert (result.calls, result.calls_without_usage, result.cost_usd) == (1, 1, None)


@dataclass
class Unreachable:
    """A service that asks to be left alone for longer than any budget."""

    name: str = "fake-1"
    provider: str = "fake"

    async def chat(self, request: ChatRequest, on_attempt: OnAttempt) -> ChatReply:
        await on_attempt(Attempt(number=1, status=429, error="429 for ever", duration_s=0.0, charged=False))
        await anyio.sleep(3600)
        raise AssertionError("the budget ends the wait")


async def test_a_provider_that_never_answers_is_no_fail_of_the_agent() -> None:
    async def gives_up(episode: Episode) -> None:
        assert episode.model is not None
        try:
            await episode.model.chat([{"role": "user", "content": "go"}])
        except ProviderFault:
            return

    refused = make_services(gives_up, model=FakeModel([ProviderFault("401", status=401)]))
    result = await carry_out(refused, model="fake-1")
    assert (result.outcome, result.reason, result.stop) == (
        Outcome.UNGRADED,
        Reason.PROVIDER,
        StopReason.INFRASTRUCTURE,
    )
    failing = make_services(gives_up, model=Unreachable())
    result = await carry_out(failing, model="fake-1", budget=Budget(wall_s=5.0))
    assert (result.outcome, result.reason, result.stop) == (
        Outcome.UNGRADED,
        Reason.PROVIDER,
        StopReason.INFRASTRUCTURE,
    )
    assert "no answer in 5.0 s: 429 for ever" in result.detail
    silent = make_services(gives_up, model=FakeModel([reply()]))
    assert (await carry_out(silent, model="fake-1")).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (Trouble("open", fault=lost(Reason.IMAGE_MISSING)), Reason.IMAGE_MISSING),
        (Trouble("exec", fault=lost()), Reason.CONTAINER_LOST),
        (Trouble("end_processes", fault=lost(Reason.ENGINE_UNREACHABLE)), Reason.ENGINE_UNREACHABLE),
        (Trouble("fetch", fault=lost(Reason.ENGINE_ERROR)), Reason.ENGINE_ERROR),
    ],
)
async def test_a_fault_below_the_solver_is_infrastructure(trouble: Trouble, reason: Reason) -> None:
    async def swallow(episode: Episode) -> None:
        with contextlib.suppress(Exception):
            await answer(episode)

    result = await carry_out(make_services(swallow, provider=MemorySandboxProvider(troubles=[trouble])))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, reason)


async def test_setup_runs_before_the_clock_and_its_failure_is_not_the_agents() -> None:
    slow = Environment(setup="setup.sh", setup_files=tree(setup__sh="sleep 50; echo 42 > /app/answer\n"))
    result = await carry_out(make_services(nothing), make_task(environment=slow, budget=Budget(wall_s=3)))
    assert (result.outcome, result.seconds) == (Outcome.PASSED, 0.0)
    broken = Environment(setup="setup.sh", setup_files=tree(setup__sh="echo no such thing; exit 7\n"))
    result = await carry_out(make_services(answer), make_task(environment=broken))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.SETUP_FAILED)
    assert "exit code 7" in result.detail
    assert "no such thing" in result.detail


async def test_a_hanging_engine_is_ended_by_the_watchdog() -> None:
    provider = MemorySandboxProvider(troubles=[Trouble("health", hang=True)])
    result = await carry_out(make_services(answer, provider=provider))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.WATCHDOG)


async def test_memory_is_named_with_its_limit() -> None:
    def program(process: Process) -> int:
        if process.argv[-1].endswith("test.sh"):
            process.files.write("/logs/verifier/reward.txt", b"0")
            return 0
        return process.exhaust_memory()

    result = await carry_out(
        make_services(answer, provider=MemorySandboxProvider(program)), make_task(limits=Limits(memory_mb=64))
    )
    assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.MEMORY_LIMIT)
    assert any("limit 64 MB" in flag for flag in result.flags)


async def test_secrets_never_reach_the_store() -> None:
    async def leak(episode: Episode) -> None:
        await episode.sandbox.exec("echo canary-1234; echo canary-1234 > /app/answer")
        raise RuntimeError("the key is canary-1234")

    services = make_services(leak, secrets={"API_KEY": "canary-1234"})
    result = await carry_out(services)
    text = result.model_dump_json() + "".join(event.model_dump_json() for event in services.store.events("r1.0000.1"))
    assert "canary-1234" not in text
    assert "[secret API_KEY]" in text


class TestSolversInThreads:
    """Foreign solvers run in a thread with an event loop of their own; real time, kept short."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_handles_work_across_the_thread(self) -> None:
        result = await carry_out(make_services(Scripted(answer, isolation="thread")))
        assert result.outcome is Outcome.PASSED

    async def test_a_blocking_solver_stalls_only_itself(self) -> None:
        async def block(episode: Episode) -> None:
            await episode.sandbox.exec("echo 42 > /app/answer")
            time.sleep(3.5)  # noqa: ASYNC251  # the point of the test
            await episode.sandbox.exec("echo late > /app/answer")

        services = make_services(Scripted(block, isolation="thread"))
        started = time.monotonic()
        result = await carry_out(services, make_task(budget=Budget(wall_s=0.3)))
        assert time.monotonic() - started < 3.2
        assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.TIME)
        await anyio.sleep(1.5)  # the abandoned thread wakes and finds its handles dead
        provider = services.provider
        assert isinstance(provider, MemorySandboxProvider)
        assert not any("late" in command.argv[-1] for command in provider.sandboxes[0].commands)

    async def test_a_crash_in_a_thread_is_told_as_one_on_the_loop(self) -> None:
        await crash_after_acting("thread")

    async def test_a_made_up_cancellation_is_the_solvers_error(self) -> None:
        async def pretend(episode: Episode) -> None:
            raise asyncio.CancelledError

        result = await carry_out(make_services(Scripted(pretend, isolation="thread")))
        assert result.stop is StopReason.SOLVER_ERROR


async def test_host_variables_are_filled_in_and_never_stored() -> None:
    task = make_task(
        environment=Environment(env={"TOKEN": "${HOST_TOKEN}", "MODE": "${MODE:-plain}"}),
        grading=Grading(tests=tree(test__sh="echo $TOKEN $MODE; echo 1 > /logs/verifier/reward.txt\n")),
    )
    services = replace(
        make_services(nothing, secrets={"HOST_TOKEN": "canary-1234"}), host_env={"HOST_TOKEN": "canary-1234"}
    )
    assert (await carry_out(services, task)).outcome is Outcome.PASSED
    grade = next(iter(services.store.events("r1.0000.1", ["grade"])))
    assert services.store.blob(grade.blobs["stdout"]) == b"[secret HOST_TOKEN] plain\n"
    result = await carry_out(make_services(nothing), task)
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.SETUP_FAILED)
    assert "HOST_TOKEN" in result.detail
