"""Trials of several runs on one store wait for their turn in one budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from harness.api.schedule_slots import turn_of, turns
from harness.protocols import Episode
from harness.records.vocabulary import Outcome
from harness.report.summary import Summary, summarise
from harness.runner.recovery import new_schedule
from harness.runner.run import Run, RunControl
from harness.store.memory import MemoryStore
from harness.store.slots import Slots
from tests.runner.scenes import answer, make_row, make_services, make_task

pytestmark = pytest.mark.anyio


class Counted:
    """Counts how many trials are with their solver at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, episode: Episode) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await anyio.sleep(5)
        await answer(episode)
        self.now -= 1


async def carry_out(slots: Slots, counted: Counted, control: RunControl | None = None) -> Summary:
    tasks = [make_task(f"t{number}") for number in range(6)]
    services = replace(make_services(counted), turn=turns(slots))
    row = make_row(tasks, concurrency=4)
    services.store.create_run(row)
    schedule = new_schedule(row.config, None)
    await Run(row, {task.id: task for task in tasks}, schedule, services, control=control).run()
    return summarise(services.store, row.run)


async def test_two_runs_share_one_budget(tmp_path: Path) -> None:
    slots, counted = Slots(tmp_path), Counted()
    slots.limit(3)
    summaries: list[Summary] = []

    async def one() -> None:
        summaries.append(await carry_out(slots, counted))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
    assert counted.most == 3
    assert [summary.outcomes[Outcome.PASSED] for summary in summaries] == [6, 6]
    assert slots.taken() == 0


async def test_without_a_budget_only_a_runs_own_limit_holds(tmp_path: Path) -> None:
    counted = Counted()
    await carry_out(Slots(tmp_path), counted)
    assert counted.most == 4
    async with turn_of(MemoryStore())(lambda: False):
        pass  # a store without a folder has none


async def test_a_trial_that_waits_can_be_interrupted(tmp_path: Path) -> None:
    slots, counted, control = Slots(tmp_path), Counted(), RunControl()
    slots.limit(1)
    assert slots.take(1) is not None  # held by another process for good
    async with anyio.create_task_group() as group:
        group.start_soon(carry_out, slots, counted, control)
        await anyio.sleep(3)
        assert counted.most == 0
        control.interrupt()
    assert counted.most == 0


async def test_a_budget_that_is_lifted_lets_all_begin(tmp_path: Path) -> None:
    slots, counted = Slots(tmp_path), Counted()
    slots.limit(1)
    assert slots.take(1) is not None
    async with anyio.create_task_group() as group:
        group.start_soon(carry_out, slots, counted)
        await anyio.sleep(3)
        slots.limit(None)
    assert counted.most == 4
