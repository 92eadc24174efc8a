"""Adaptive runs on the twins: every choice an event, the same choices again, the same next choice after a crash."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from harness.adaptive import AdaptiveEngine, Bank, EngineSettings, TasksStop, calibrate, simulate_population
from harness.protocols import Episode
from harness.records.run import RunRow
from harness.records.task import Task
from harness.records.vocabulary import Outcome, Reason
from harness.report.summary import summarise
from harness.runner.recovery import new_schedule, restored_schedule
from harness.runner.run import Run, RunControl
from harness.runner.schedule import CHOICE, UPDATE, AdaptiveSchedule
from harness.runner.services import Services
from harness.store.memory import MemoryStore
from harness.testing import MemorySandboxProvider, Trouble, lost
from tests.runner.scenes import adaptive_config, answer, make_row, make_services, make_task
from tests.runner.test_run import Killed, MortalStore, assert_intact

pytestmark = pytest.mark.anyio

ITEMS = tuple(f"i{number:02}" for number in range(40))
STOP = 15


@pytest.fixture(scope="module")
def bank() -> Bank:
    population = simulate_population(5, 60, ITEMS, d=2)
    return calibrate(population.responses()).bank


def engine_of(bank: Bank) -> AdaptiveEngine:
    return AdaptiveEngine(bank, EngineSettings(seed=3, stops=(TasksStop(STOP),)))


def tasks_of() -> list[Task]:
    return [make_task(item) for item in ITEMS]


async def half(episode: Episode) -> None:
    """Pass about half, decided by the task's own seed, after a time that is the task's own too."""
    await anyio.sleep(1 + episode.seed % 9973 / 1000)  # no two end at once: the order of completion is given
    if episode.seed % 2:
        await answer(episode)


async def start(services: Services, bank: Bank, control: RunControl | None = None, **config: Any) -> RunRow:
    tasks = tasks_of()
    row = make_row(tasks, adaptive=adaptive_config(STOP), **config)
    services.store.create_run(row)
    schedule = new_schedule(row.config, engine_of(bank))
    await Run(row, {t.id: t for t in tasks}, schedule, services, control=control).run()
    return row


async def take_up(services: Services, bank: Bank, row: RunRow) -> AdaptiveSchedule:
    schedule = restored_schedule(row, services, engine_of(bank))
    assert isinstance(schedule, AdaptiveSchedule)
    await Run(row, {t.id: t for t in tasks_of()}, schedule, services).run()
    return schedule


def choices(services: Services) -> list[str]:
    return [event.payload["item"] for event in services.store.events("r1", [CHOICE])]


async def test_it_stops_at_k_and_every_choice_is_an_event(bank: Bank) -> None:
    services = make_services(half)
    await start(services, bank)
    chosen = list(services.store.events("r1", [CHOICE]))
    assert len(chosen) == STOP == len({event.payload["item"] for event in chosen})
    for event in chosen:
        assert {"theta", "logdet_information", "candidates", "seed", "pending", "value"} <= set(event.payload)
    updates = list(services.store.events("r1", [UPDATE]))
    assert len(updates) == STOP
    assert_intact(services)


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_the_same_outcomes_in_the_same_order_give_the_same_choices(bank: Bank, concurrency: int) -> None:
    first, second = make_services(half), make_services(half)
    await start(first, bank, concurrency=concurrency)
    await start(second, bank, concurrency=concurrency)
    assert choices(first) == choices(second)


async def test_interrupted_runs_continue_with_the_choices_they_would_have_made(bank: Bank) -> None:
    whole = make_services(half)
    await start(whole, bank, concurrency=1)
    for at_s in (3.5, 20.0, 41.0):
        services, control = make_services(half), RunControl()

        async def interrupt(at_s: float = at_s, control: RunControl = control) -> None:
            await anyio.sleep(at_s)
            control.interrupt()

        async with anyio.create_task_group() as group:
            group.start_soon(interrupt)
            row = await start(services, bank, control, concurrency=1)
        await take_up(services, bank, row)
        assert choices(services) == choices(whole)
        assert_intact(services)


async def test_killed_at_any_write_it_resumes_to_the_same_next_choice(bank: Bank) -> None:
    counted = MortalStore(10**9)
    whole = make_services(half, store=counted)
    await start(whole, bank, concurrency=1)
    for dies_at in range(1, counted.writes, 17):
        store = MortalStore(dies_at)
        services = make_services(half, store=store)
        with pytest.raises(BaseException) as died:  # noqa: PT011  # a group around Killed
            await start(services, bank, concurrency=1)
        assert died.group_contains(Killed) or died.errisinstance(Killed)
        store.dies_at = 10**9
        await take_up(services, bank, store.run("r1"))
        assert choices(services) == choices(whole), dies_at
        assert_intact(services)


async def test_an_unavailable_task_is_replaced_and_leaves_the_estimate(bank: Bank) -> None:
    first = AdaptiveSchedule(engine_of(bank), STOP).next(())[0]
    assert first is not None
    missing = Trouble("open", times=99, fault=lost(Reason.IMAGE_MISSING), trial="r1.0000.*")
    services = make_services(half, provider=MemorySandboxProvider(troubles=[missing]))
    row = await start(services, bank)
    summary = summarise(services.store, "r1")
    assert summary.outcomes[Outcome.PASSED] + summary.outcomes[Outcome.FAILED] == STOP
    assert summary.outcomes[Outcome.UNGRADED] == 1
    engine = engine_of(bank)
    engine.replay(event.payload for event in services.store.events("r1", [UPDATE]))
    assert engine.estimate().n_items == len(ITEMS) - 1
    schedule = await take_up(services, bank, row)  # it has its k grades: nothing to do
    assert schedule.engine.estimate().executed == STOP


async def test_a_dead_engine_does_not_drain_the_pool(bank: Bank) -> None:
    gone = Trouble("open", nth=5, times=999, fault=lost(Reason.ENGINE_UNREACHABLE))
    provider = MemorySandboxProvider(troubles=[gone])
    services = make_services(half, provider=provider)
    row = await start(services, bank, concurrency=2)
    assert isinstance(services.store, MemoryStore)
    assert len(services.store.trials("r1")) < 12
    provider.troubles.clear()
    await take_up(services, bank, row)
    summary = summarise(services.store, "r1")
    assert summary.outcomes[Outcome.PASSED] + summary.outcomes[Outcome.FAILED] == STOP
    assert summary.outcomes[Outcome.UNGRADED] == 0


async def test_what_a_task_took_is_told_with_its_outcome_every_attempt_included(bank: Bank) -> None:
    fault = Trouble("exec", fault=lost(Reason.CONTAINER_LOST))
    services = make_services(half, provider=MemorySandboxProvider(troubles=[fault]))
    row = await start(services, bank, retries=1)
    updates = {event.payload["item"]: event.payload for event in services.store.events(row.run, [UPDATE])}
    rows = services.store.trials(row.run)
    assert {trial.attempt for trial in rows} == {1, 2}
    for item, update in updates.items():
        results = [trial.result for trial in rows if trial.task == item and trial.result is not None]
        assert update["duration_s"] == pytest.approx(sum(result.seconds or 0.0 for result in results))
        costs = [result.cost_usd for result in results]
        assert update.get("cost_usd") == (None if None in costs else sum(cost or 0.0 for cost in costs))
