"""Whole runs on the twins: retries, halting, interruption, and taking a dead run up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from harness.protocols import Episode
from harness.records.event import Event, EventDraft
from harness.records.grade import TrialResult
from harness.records.run import RunRow
from harness.records.task import Task
from harness.records.vocabulary import Outcome, Reason
from harness.report.summary import Summary, summarise
from harness.runner.progress import Progress
from harness.runner.recovery import new_schedule, restored_schedule
from harness.runner.run import Run, RunControl
from harness.runner.services import Services
from harness.store.memory import MemoryStore
from harness.store.verify import verify_run
from harness.testing import MemorySandboxProvider, Trouble, lost
from tests.runner.scenes import Scripted, answer, make_row, make_services, make_task, nothing

pytestmark = pytest.mark.anyio


def tasks_named(count: int) -> list[Task]:
    return [make_task(f"t{number}") for number in range(count)]


async def start(services: Services, tasks: list[Task], control: RunControl | None = None, **config: Any) -> Summary:
    row = make_row(tasks, **config)
    services.store.create_run(row)
    with services.store.own(row.run):
        schedule = new_schedule(row.config, None)
        await Run(row, {task.id: task for task in tasks}, schedule, services, control=control).run()
    return summarise(services.store, row.run)


async def take_up(services: Services, tasks: list[Task], row: RunRow) -> Summary:
    with services.store.own(row.run):
        schedule = restored_schedule(row, services, None)
        await Run(row, {task.id: task for task in tasks}, schedule, services).run()
    return summarise(services.store, row.run)


def assert_intact(services: Services) -> None:
    assert isinstance(services.store, MemoryStore)
    report = verify_run(services.store, "r1")
    assert report.ok, report.problems
    assert isinstance(services.provider, MemorySandboxProvider)
    assert not services.provider.live


async def test_one_bad_task_neither_aborts_nor_vanishes() -> None:
    tasks = tasks_named(10)
    tasks[7] = make_task("t7", unsupported=("gpus",))
    provider = MemorySandboxProvider(
        troubles=[Trouble("open", times=99, fault=lost(Reason.IMAGE_MISSING), trial="*.0004.*")]
    )
    services = make_services(answer, provider=provider)
    summary = await start(services, tasks)
    assert summary.outcomes[Outcome.PASSED] == 8
    assert {line.task: line.reason for line in summary.trials if line.reason} == {
        "t4": Reason.IMAGE_MISSING,
        "t7": Reason.UNSUPPORTED,
    }
    assert not summary.complete
    assert summary.interval == (0.8, 1.0)
    assert_intact(services)


async def test_infrastructure_faults_get_a_new_attempt_and_keep_the_old() -> None:
    provider = MemorySandboxProvider(troubles=[Trouble("exec", fault=lost(), trial="*.0001.1")])
    services = make_services(answer, provider=provider)
    summary = await start(services, tasks_named(3))
    assert summary.outcomes[Outcome.PASSED] == 3
    assert summary.attempts == 4
    rows = [row for row in services.store.trials("r1") if row.slot == 1]
    assert [(row.attempt, row.result.outcome) for row in rows if row.result] == [
        (1, Outcome.UNGRADED),
        (2, Outcome.PASSED),
    ]
    assert_intact(services)


async def test_an_agents_own_crash_is_not_re_rolled() -> None:
    async def crash(episode: Episode) -> None:
        raise RuntimeError("hard task")

    services = make_services(crash)
    summary = await start(services, tasks_named(2))
    assert summary.attempts == 2
    assert {line.reason for line in summary.trials} == {Reason.SOLVER_ERROR}


async def test_an_engine_that_is_gone_halts_the_run_and_leaves_it_resumable() -> None:
    gone = Trouble("open", nth=3, times=999, fault=lost(Reason.ENGINE_UNREACHABLE))
    provider = MemorySandboxProvider(troubles=[gone])
    services = make_services(answer, provider=provider)
    tasks = tasks_named(20)
    summary = await start(services, tasks, concurrency=1)
    assert summary.outcomes[Outcome.PASSED] == 2
    assert summary.attempts == 4  # two that passed, one attempt and its retry
    provider.troubles.clear()
    summary = await take_up(services, tasks, services.store.run("r1"))
    assert summary.outcomes[Outcome.PASSED] == 20
    assert_intact(services)


async def test_concurrency_is_kept() -> None:
    most = 0

    async def slow(episode: Episode) -> None:
        nonlocal most
        assert isinstance(services.provider, MemorySandboxProvider)
        most = max(most, len(services.provider.live))
        await anyio.sleep(3)

    services = make_services(slow)
    await start(services, tasks_named(9), concurrency=3)
    assert most == 3


@pytest.mark.parametrize("at_s", [0.5, 7.0, 21.0])
async def test_an_interrupt_stores_what_there_is_and_resume_does_the_rest(at_s: float) -> None:
    async def slow(episode: Episode) -> None:
        await anyio.sleep(5)
        await answer(episode)

    services = make_services(slow)
    tasks, control = tasks_named(12), RunControl()
    async with anyio.create_task_group() as group:

        async def interrupt() -> None:
            await anyio.sleep(at_s)
            control.interrupt()

        group.start_soon(interrupt)
        summary = await start(services, tasks, control)
    assert_intact(services)
    done = summary.outcomes[Outcome.PASSED]
    assert summary.outcomes[Outcome.UNGRADED] == (4 if done < 12 else 0)
    summary = await take_up(services, tasks, services.store.run("r1"))
    assert summary.outcomes[Outcome.PASSED] == 12
    graded = Counter(row.slot for row in services.store.trials("r1") if row.result and row.result.outcome.graded)
    assert set(graded.values()) == {1}
    assert_intact(services)


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it reaches the store."""


class MortalStore(MemoryStore):
    """A store whose process dies at the nth write."""

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.writes, self.dies_at = 0, dies_at

    def _live(self) -> None:
        self.writes += 1
        if self.writes >= self.dies_at:
            raise Killed

    def append(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        self._live()
        return super().append(drafts)

    def finish(self, result: TrialResult, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        self._live()
        return super().finish(result, drafts)


async def writes_of_a_whole_run() -> int:
    store = MortalStore(10**9)
    await start(make_services(answer, store=store), tasks_named(3), concurrency=2)
    return store.writes


async def test_killed_at_any_write_resume_runs_exactly_what_is_missing() -> None:
    tasks = tasks_named(3)
    for dies_at in range(1, await writes_of_a_whole_run() + 1):
        store = MortalStore(dies_at)
        services = make_services(answer, store=store)
        with pytest.raises(BaseException) as died:  # noqa: PT011  # a group around Killed
            await start(services, tasks, concurrency=2)
        assert died.group_contains(Killed) or died.errisinstance(Killed)
        store.dies_at = 10**9
        graded = {row.slot for row in store.trials("r1") if row.result and row.result.outcome.graded}
        made = len(store.trials("r1"))
        summary = await take_up(services, tasks, store.run("r1"))
        assert summary.outcomes[Outcome.PASSED] == 3, dies_at
        assert len(store.trials("r1")) == made + 3 - len(graded), dies_at
        assert_intact(services)


async def test_a_run_that_is_done_has_nothing_to_resume() -> None:
    services = make_services(nothing)
    tasks = tasks_named(4)
    await start(services, tasks)
    summary = await take_up(services, tasks, services.store.run("r1"))
    assert summary.attempts == 4


async def test_repeats_are_slots_of_their_own() -> None:
    services = make_services(answer)
    summary = await start(services, tasks_named(2), repeats=3)
    assert (summary.planned, summary.attempts) == (6, 6)
    assert Counter(line.repeat for line in summary.trials) == {0: 2, 1: 2, 2: 2}


async def test_the_live_tally_equals_the_stored_summary() -> None:
    seen: list[Progress] = []

    async def mixed(episode: Episode) -> None:
        if episode.seed % 3 == 0:
            raise RuntimeError("crash")
        if episode.seed % 3 == 1:
            await answer(episode)

    services = make_services(Scripted(mixed))
    tasks = tasks_named(15)
    row = make_row(tasks)
    services.store.create_run(row)
    run = Run(row, {t.id: t for t in tasks}, new_schedule(row.config, None), services, observer=seen.append)
    await run.run()
    assert seen[-1].outcomes == summarise(services.store, "r1").outcomes
