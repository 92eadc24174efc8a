"""The exit code of a run that has ended, from its summary."""

from __future__ import annotations

import pytest

from harness.cli.execution import exit_code
from harness.cli.exits import Exit
from harness.records.errors import ProviderFault
from harness.report.summary import Summary, summarise
from harness.runner.recovery import new_schedule
from harness.runner.run import Run
from tests.runner.scenes import FakeModel, Script, answer, make_row, make_services, make_task
from tests.runner.test_unknown_spend import chat_then_answer

pytestmark = pytest.mark.anyio


async def ended(script: Script, tasks: int, model: FakeModel | None = None) -> Summary:
    made = [make_task(f"t{number}") for number in range(tasks)]
    services = make_services(script, model=model)
    row = make_row(made, model="fake-1" if model else None, retries=0)
    services.store.create_run(row)
    await Run(row, {task.id: task for task in made}, new_schedule(row.config, None), services).run()
    return summarise(services.store, "r1")


async def test_a_service_that_never_answered_is_unreachable_however_few_trials_there_were() -> None:
    dead = FakeModel([ProviderFault("503", status=503)])
    summary = await ended(chat_then_answer, 2, dead)
    assert summary.halted is None
    assert exit_code(summary) is Exit.UNREACHABLE


async def test_a_service_that_refuses_what_is_sent_was_reached_and_the_run_halts() -> None:
    refusal = FakeModel([ProviderFault("400: offer a tool", status=400)] * 9)
    summary = await ended(chat_then_answer, 9, refusal)
    assert "offer a tool" in (summary.halted or "")
    assert summary.attempts < 9
    assert exit_code(summary) is Exit.NO_GRADE


async def test_one_trial_without_an_answer_among_others_has_no_grade() -> None:
    flaky = FakeModel([ProviderFault("503", status=503)])

    async def sometimes(episode: object) -> None:
        if not flaky.asked:
            await chat_then_answer(episode)  # type: ignore[arg-type]
        else:
            await answer(episode)  # type: ignore[arg-type]

    assert exit_code(await ended(sometimes, 2, flaky)) is Exit.NO_GRADE
    assert exit_code(await ended(answer, 2)) is Exit.OK
