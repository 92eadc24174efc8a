"""What a trial spent, from its events."""

from __future__ import annotations

from typing import Any

import pytest

from harness.billing.account import account, accountant
from harness.billing.prices import fixed_prices
from harness.records.event import Event
from harness.records.usage import Account, Usage
from harness.records.vocabulary import Actor, Phase

PRICES = fixed_prices({"date": "d", "models": {"m": {"input": 1.0, "output": 2.0}}})


class Log:
    """Builds a trial's events in the runner's words."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls = 0

    def add(self, kind: str, payload: dict[str, Any], span: str | None = None, parent: str | None = None) -> None:
        self.events.append(
            Event(
                stream="t",
                kind=kind,
                actor=Actor.AGENT,
                phase=Phase.INTERACTION,
                wall="w",
                monotonic_s=0.0,
                span=span,
                parent=parent,
                payload=payload,
                seq=len(self.events),
                previous="",
                hash="",
            )
        )

    def call(self, *attempts: dict[str, Any], answer: dict[str, Any] | None = None, failed: bool = False) -> None:
        self.calls += 1
        span = f"s{self.calls}"
        self.add("model.request", {"gen_ai.request.model": "m"}, span)
        for number, attempt in enumerate(attempts, start=1):
            self.add("model.attempt", {"number": number, "status": 200, "charged": True, **attempt}, f"{span}a", span)
        if answer is not None:
            self.add("model.call", {"gen_ai.response.model": "m", "gen_ai.provider.name": "p", **answer}, span)
        if failed:
            self.add("model.failed", {"error": "given up", "status": 429}, span)


def usage(input: int, output: int) -> dict[str, Any]:
    return Usage(input=input, output=output).plain()


REFUSED = {"status": 429, "error": "slow down", "charged": False}
CUT = {"status": None, "error": "the stream was cut", "charged": None}


def good(input: int = 100, output: int = 10, **changes: Any) -> dict[str, Any]:
    return {"usage": usage(input, output), "gen_ai.response.id": f"r{input}", "cost_usd": 0.5, **changes}


def test_a_trial_without_a_model_cost_nothing() -> None:
    log = Log()
    for _ in range(3):
        log.add("exec.started", {})
        log.add("exec", {})
    assert account(log.events) == Account(commands=3, cost_usd=0.0)
    assert account(log.events).steps == 3


def test_an_answer_stands_for_the_attempt_that_brought_it() -> None:
    log = Log()
    log.call(REFUSED, {"usage": usage(100, 10), "response_id": "r100"}, answer=good())
    log.call({"usage": usage(200, 20)}, answer=good(200, 20, **{"gen_ai.response.id": None}))
    seen = account(log.events)
    assert (seen.usage, seen.calls, seen.calls_without_usage) == (Usage(input=300, output=30), 2, 0)
    assert seen.cost_usd == 1.0


def test_an_attempt_that_was_charged_and_failed_is_booked_beside_the_answer() -> None:
    log = Log()
    charged = {"error": "the response is not JSON", "usage": usage(1_000_000, 0), "response_id": "lost"}
    log.call(charged, {"usage": usage(100, 10)}, answer=good())
    seen = accountant(PRICES.cost_usd)(log.events)
    assert (seen.usage, seen.calls) == (Usage(input=1_000_100, output=10), 1)
    assert seen.cost_usd == pytest.approx(1.5)
    unpriced = account(log.events)
    assert (unpriced.cost_usd, unpriced.cost_at_least_usd) == (None, 0.5)


def test_a_cut_stream_makes_the_cost_a_lower_bound() -> None:
    log = Log()
    log.call(CUT, {"usage": usage(100, 10)}, answer=good())
    seen = account(log.events)
    assert (seen.cost_usd, seen.cost_at_least_usd, seen.calls_without_usage) == (None, 0.5, 1)


def test_an_answer_without_usage_is_an_unknown_cost_not_zero() -> None:
    """CASES K05, K13."""
    log = Log()
    for answer in (good(), good(usage=None, cost_usd=None), good(300, usage={"input": 5}, cost_usd=None)):
        log.call({}, answer=answer)
    seen = account(log.events, PRICES.cost_usd)
    assert (seen.calls, seen.calls_without_usage, seen.cost_usd, seen.cost_at_least_usd) == (3, 2, None, 0.5)


def test_a_call_that_only_was_refused_cost_nothing() -> None:
    log = Log()
    log.call(REFUSED, REFUSED, failed=True)
    seen = account(log.events)
    assert (seen.calls, seen.calls_without_usage, seen.cost_usd, seen.usage) == (0, 0, 0.0, None)


def test_a_call_cut_off_while_it_was_tried_again_may_have_been_charged() -> None:
    log = Log()
    log.call(REFUSED)
    seen = account(log.events)
    assert (seen.calls_without_usage, seen.cost_usd) == (1, None)


def test_a_call_under_way_when_the_process_died_may_be_on_the_invoice() -> None:
    """CASES K09: two good calls, then the end; what was booked stays, what is not known is said."""
    log = Log()
    log.call({}, answer=good())
    log.call({}, answer=good(200))
    assert account(log.events).cost_usd == 1.0
    log.call()
    seen = account(log.events)
    assert (seen.calls, seen.calls_without_usage, seen.cost_usd, seen.cost_at_least_usd) == (2, 1, None, 1.0)


def test_a_missing_cost_is_priced_when_a_table_is_at_hand() -> None:
    log = Log()
    log.call({}, answer=good(1_000_000, 500_000, cost_usd=None))
    assert account(log.events, PRICES.cost_usd).cost_usd == pytest.approx(2.0)
    assert account(log.events).cost_usd is None


def test_every_prefix_of_a_log_can_be_folded_and_spend_never_shrinks() -> None:
    log = Log()
    log.call(REFUSED, CUT, {"usage": usage(100, 10)}, answer=good())
    log.add("exec.started", {})
    log.call({"usage": usage(7, 7), "error": "x"}, {}, answer=good(200))
    least = [account(log.events[:end], PRICES.cost_usd).cost_at_least_usd for end in range(len(log.events) + 1)]
    assert least == sorted(least)
    assert least[0] == 0.0
    assert least[-1] > 1.0
