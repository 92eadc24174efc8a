"""Under a token or cost budget, a spend that nobody told is no fail of the agent: a typed reason, and soon a halt."""

from __future__ import annotations

import pytest

from harness.billing.account import PriceOf, spans_of
from harness.billing.prices import fixed_prices
from harness.protocols import Episode
from harness.records.chat import ChatReply
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.usage import Usage
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.halting import UNKNOWN_SPENDS_IN_A_ROW
from harness.runner.recovery import new_schedule
from harness.runner.run import Run
from tests.runner.scenes import FakeModel, answer, carry_out, make_row, make_services, make_task, reply

pytestmark = pytest.mark.anyio

TIERS = {"batch": {"input": 0.5, "output": 5.0}}
TABLE = {"date": "2026-01-01", "models": {"fake-1": {"input": 1.0, "output": 10.0, "tiers": TIERS}}}
PRICE = fixed_prices(TABLE).cost_usd


def using(**usage: int) -> ChatReply:
    return reply().model_copy(update={"usage": Usage(**usage)})


async def chat_then_answer(episode: Episode) -> None:
    assert episode.model is not None
    await episode.model.chat([{"role": "user", "content": "go"}])
    await answer(episode)


async def spend(said: ChatReply, price: PriceOf = PRICE, budget: Budget | None = None) -> TrialResult:
    services = make_services(chat_then_answer, model=FakeModel([said]), price=price)
    return await carry_out(services, make_task(budget=budget or Budget(cost_usd=1.0)), model="fake-1")


@pytest.mark.parametrize(
    ("said", "usd"),
    [
        (reply().model_copy(update={"usage": Usage(input=10, output=1), "service_tier": "default"}), 20e-6),
        (reply().model_copy(update={"usage": Usage(input=10, output=1), "service_tier": "batch"}), 10e-6),
        (using(input=10, output=1), 20e-6),
        (using(input=10, output=1, reasoning=2), 40e-6),
        (using(input=10, output=1, cache_read=5), 25e-6),
        (using(input=10, output=1, cache_write=5), 30e-6),
    ],
)
async def test_every_bucket_that_a_service_reports_has_a_cost_by_a_table_of_two_prices(
    said: ChatReply, usd: float
) -> None:
    result = await spend(said)
    assert (result.outcome, result.stop, result.reason) == (Outcome.PASSED, StopReason.FINISHED, None)
    assert result.cost_usd == pytest.approx(usd)


@pytest.mark.parametrize(
    ("said", "price", "budget", "stop", "words"),
    [
        (reply(usage=False), PRICE, Budget(cost_usd=1.0), StopReason.COST, "usage was not reported"),
        (using(input=10), PRICE, Budget(cost_usd=1.0), StopReason.COST, "usage was not reported"),
        (reply(usage=False), PRICE, Budget(tokens=999), StopReason.TOKENS, "reported no usage"),
        (reply().model_copy(update={"service_tier": "flex"}), PRICE, Budget(cost_usd=1.0), StopReason.COST, "price is"),
        (reply(), lambda model, usage, tier: None, Budget(cost_usd=1.0), StopReason.COST, "price is unknown"),
    ],
)
async def test_a_spend_that_is_unknown_is_no_fail(
    said: ChatReply, price: PriceOf, budget: Budget, stop: StopReason, words: str
) -> None:
    result = await spend(said, price, budget)
    assert (result.outcome, result.reason, result.stop) == (Outcome.UNGRADED, Reason.SPEND_UNKNOWN, stop)
    assert words in result.detail
    assert result.cost_usd is None


@pytest.mark.parametrize("price", [PRICE, lambda model, usage, tier: None])
async def test_without_such_a_budget_it_is_only_unknown(price: PriceOf) -> None:
    result = await spend(reply(usage=False), price, Budget(steps=9))
    assert (result.outcome, result.cost_usd, result.calls_without_usage) == (Outcome.PASSED, None, 1)


async def test_an_overspent_budget_is_still_graded() -> None:
    result = await spend(using(input=2_000_000, output=1))
    assert (result.outcome, result.reason, result.stop) == (Outcome.FAILED, None, StopReason.COST)


async def test_a_service_that_never_tells_halts_the_run_with_a_remedy_and_fails_nothing() -> None:
    tasks = [make_task(f"t{number}", budget=Budget(cost_usd=1.0)) for number in range(9)]
    services = make_services(chat_then_answer, model=FakeModel([reply(usage=False)]), price=PRICE)
    row = make_row(tasks, model="fake-1", concurrency=1)
    services.store.create_run(row)
    run = Run(row, {task.id: task for task in tasks}, new_schedule(row.config, None), services)
    await run.run()
    results = [trial.result for trial in services.store.trials("r1")]
    assert len(results) == UNKNOWN_SPENDS_IN_A_ROW  # and none had a second attempt: it would meet the same
    assert {result.reason for result in results if result is not None} == {Reason.SPEND_UNKNOWN}
    assert run.halted is not None
    assert "use a service that reports usage" in run.halted


@pytest.mark.parametrize(("tier", "usd"), [("batch", 10e-6), ("flex", None), (None, 20e-6)])
async def test_a_run_of_ours_is_billed_by_the_tier_that_its_service_named(tier: str | None, usd: float | None) -> None:
    said = using(input=10, output=1).model_copy(update={"service_tier": tier})
    services = make_services(chat_then_answer, model=FakeModel([said]), price=PRICE)
    result = await carry_out(services, make_task(), model="fake-1")
    assert result.cost_usd == (None if usd is None else pytest.approx(usd))
    (span,) = spans_of(services.store.events(result.trial))
    assert (span.tier, span.cost_usd) == (tier, result.cost_usd)
