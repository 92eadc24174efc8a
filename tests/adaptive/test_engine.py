"""The engine: determinism, replay, items in flight, end states."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import (
    AdaptiveEngine,
    CalibrationSettings,
    Choice,
    EndReason,
    EngineSettings,
    Policy,
    StandardErrorStop,
    Stop,
    StopView,
    TasksStop,
    Withdrawal,
    calibrate,
    simulate_population,
)
from harness.adaptive.errors import BankError, EngineError, StateError
from harness.adaptive.policies import POLICIES

from .banks import random_bank

BANK = random_bank(11, n=150, d=3)


def truth(item: str) -> bool:
    return hash_like(item) % 5 < 3


def hash_like(item: str) -> int:
    return int(item.split("-")[1]) * 7919 % 101


def drive(engine: AdaptiveEngine, order: np.random.Generator, in_flight: int, steps: int) -> list[Choice]:
    """Keep `in_flight` items going and complete a random one each time."""
    pending: list[str] = []
    choices: list[Choice] = []
    for _ in range(steps):
        while len(pending) < in_flight and isinstance(step := engine.next(pending), Choice):
            choices.append(step)
            pending.append(step.item)
        if not pending:
            break
        item = pending.pop(int(order.integers(len(pending))))
        engine.observe(item, truth(item))
    return choices


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_run_is_a_function_of_seed_bank_and_order_of_completion(policy: Policy, in_flight: int) -> None:
    runs = [
        drive(AdaptiveEngine(BANK, EngineSettings(policy=policy, seed=5)), np.random.default_rng(1), in_flight, 60)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    items = [choice.item for choice in runs[0]]
    assert len(set(items)) == len(items)


def test_asking_changes_nothing_and_the_order_of_the_pending_does_not_matter() -> None:
    engine = AdaptiveEngine(BANK)
    drive(engine, np.random.default_rng(1), 1, 10)
    free = [item for item in BANK.item_ids if engine.state.open[BANK.index[item]]][:6]
    first = engine.next(free)
    assert engine.next(free[::-1]) == first == engine.next(free)
    assert engine.next() == engine.next()


@given(st.integers(0, 2**31), st.integers(0, 60))
@settings(max_examples=15, deadline=None)
def test_replay_from_json_gives_every_next_choice_to_the_bit(seed: int, cut: int) -> None:
    chosen = EngineSettings(seed=seed % 7)
    rng = np.random.default_rng(seed)
    engine = AdaptiveEngine(BANK, chosen)
    engine.withdraw("item-3", "unavailable", "gold failed")
    drive(engine, rng, 4, cut)
    free = [item for item in BANK.item_ids if engine.state.open[BANK.index[item]]]
    engine.withdraw(free[0], Withdrawal.UNGRADED, "grader timeout")
    engine.withdraw(free[1], Withdrawal.UNGRADED, "crash")
    engine.reinstate(free[1])
    again = AdaptiveEngine(BANK, chosen)
    again.replay(json.loads(json.dumps(engine.events)))
    assert again.events == engine.events
    assert again.next() == engine.next()
    assert again.next(free[2:6]) == engine.next(free[2:6])
    assert again.estimate() == engine.estimate()
    assert again.state.covariance.tobytes() == engine.state.covariance.tobytes()
    assert drive(again, np.random.default_rng(9), 3, 20) == drive(engine, np.random.default_rng(9), 3, 20)


def test_choices_stops_and_settings_are_plain_json() -> None:
    engine = AdaptiveEngine(BANK, EngineSettings(stops=(TasksStop(1),)))
    choice = engine.next()
    assert isinstance(choice, Choice)
    event = choice.as_event()
    assert json.loads(json.dumps(event)) == event
    assert event["theta"] == list(engine.state.theta)
    engine.observe(choice.item, True)
    stop = engine.next()
    assert isinstance(stop, Stop)
    assert json.loads(json.dumps(stop.as_event())) == {
        "reason": "tasks",
        "detail": "1 tasks",
        "executed": 1,
        "pending": 0,
        "withdrawn": 0,
        "final": True,
    }
    assert json.loads(json.dumps(engine.describe()))["bank"] == BANK.digest


def test_a_bank_of_150_ends_a_stop_at_200_with_its_reason_and_no_repeat() -> None:
    """CASES S14."""
    engine = AdaptiveEngine(BANK, EngineSettings(stops=(TasksStop(200),)))
    items = [choice.item for choice in drive(engine, np.random.default_rng(0), 8, 1000)]
    assert sorted(items) == sorted(BANK.item_ids)
    stop = engine.next()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.executed, stop.final) == (EndReason.BANK_EXHAUSTED, 150, True)


def test_an_item_withdrawn_in_mid_run_is_skipped_and_replaced() -> None:
    """CASES S14."""
    engine = AdaptiveEngine(BANK, EngineSettings(stops=(TasksStop(10),)))
    drive(engine, np.random.default_rng(0), 1, 9)
    last = engine.next()
    assert isinstance(last, Choice)
    waiting = engine.next([last.item])
    assert isinstance(waiting, Stop)
    assert (waiting.reason, waiting.final, waiting.pending) == (EndReason.TASKS, False, 1)
    engine.withdraw(last.item, Withdrawal.UNAVAILABLE, "image missing")
    replacement = engine.next()
    assert isinstance(replacement, Choice)
    assert replacement.item != last.item
    engine.observe(replacement.item, True)
    stop = engine.next()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.executed, stop.withdrawn) == (EndReason.TASKS, 10, 1)


def test_nothing_available_is_told_apart_from_exhausted() -> None:
    engine = AdaptiveEngine(BANK.restrict(BANK.item_ids[:4]), EngineSettings(stops=()))
    engine.observe("item-0", True)
    for item in ("item-1", "item-2"):
        engine.withdraw(item, "unavailable", "null passed")
    waiting = engine.next(["item-3"])
    assert isinstance(waiting, Stop)
    assert (waiting.reason, waiting.final) == (EndReason.NONE_AVAILABLE, False)
    engine.observe("item-3", False)
    stop = engine.next()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.final, stop.withdrawn) == (EndReason.NONE_AVAILABLE, True, 2)


def test_stop_at_a_standard_error() -> None:
    rules = (TasksStop(140), StandardErrorStop(0.03, minimum_tasks=5))
    engine = AdaptiveEngine(BANK, EngineSettings(stops=rules))
    while isinstance(step := engine.next(), Choice):
        assert len(engine.state.items) < 5 or engine.estimate().standard_error > 0.03
        engine.observe(step.item, truth(step.item))
    assert step.reason is EndReason.STANDARD_ERROR
    assert engine.estimate().standard_error <= 0.03
    assert 5 <= step.executed < 140


def test_a_rule_of_ones_own_can_stop_for_a_budget() -> None:
    class Spent:
        def check(self, view: StopView) -> tuple[EndReason, str] | None:
            spent_usd = 0.5 * (len(view.state.items) + view.n_pending)
            return (EndReason.BUDGET, f"{spent_usd} of 2 USD") if spent_usd >= 2 else None

    engine = AdaptiveEngine(BANK, EngineSettings(stops=(Spent(), TasksStop(200))))
    assert len(drive(engine, np.random.default_rng(0), 2, 50)) == 4
    stop = engine.next()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.detail) == (EndReason.BUDGET, "2.0 of 2 USD")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"kind": "dance", "item": "item-1"}, "unknown kind 'dance'"),
        ({"kind": "observe", "item": "item-1"}, "no 'passed'"),
        ({"item": "item-1"}, "no 'kind'"),
        ({"kind": "withdraw", "item": "item-1", "as": "tired", "reason": ""}, "no withdrawal 'tired'"),
    ],
)
def test_events_not_understood_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        AdaptiveEngine(BANK).replay([event])


def test_contradictions_are_refused() -> None:
    engine = AdaptiveEngine(BANK)
    engine.observe("item-1", True)
    engine.observe("item-1", True)  # told twice: nothing new
    with pytest.raises(StateError, match="already has another outcome"):
        engine.observe("item-1", False)
    with pytest.raises(BankError, match="'other'"):
        engine.observe("other", True)
    for pending in (["item-1"], ["item-2", "item-2"]):
        with pytest.raises(StateError, match="in flight"):
            engine.next(pending)
    with pytest.raises(BankError, match="'other'"):
        engine.next(["other"])
    assert len(engine.events) == 1
    with pytest.raises(EngineError, match="at least 1"):
        TasksStop(0)
    with pytest.raises(EngineError, match="above 0"):
        StandardErrorStop(0)


def test_a_suite_the_bank_does_not_know_at_all_still_runs() -> None:
    known = calibrate(simulate_population(1, 30, ["a", "b", "c"], 1).responses(), CalibrationSettings(dims=1)).bank
    engine = AdaptiveEngine(known.align([f"new-{i}" for i in range(20)]), EngineSettings(stops=(TasksStop(5),)))
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, True)
    assert step.executed == 5
    estimate = engine.estimate()
    assert 0 <= estimate.lower < estimate.value < estimate.upper <= 1


def test_an_unconverged_bank_may_be_allowed_but_its_record_keeps_saying_so() -> None:
    convergence = replace(BANK.provenance.convergence, converged=False, max_gradient=1.0)
    bank = replace(BANK, provenance=replace(BANK.provenance, convergence=convergence))
    engine = AdaptiveEngine(bank, EngineSettings(allow_unconverged=True))
    assert engine.describe()["provenance"]["convergence"]["converged"] is False


def test_ungraded_items_widen_the_interval_to_both_of_their_outcomes() -> None:
    """Were they taken as missing at random, an agent that crashes where it would fail would raise its estimate."""
    population = simulate_population(11, 60, tuple(f"i{n}" for n in range(60)), d=1)
    bank = calibrate(population.responses(range(59)), CalibrationSettings(dims=1)).bank
    graded, crashing = (AdaptiveEngine(bank, EngineSettings(stops=(TasksStop(60),))) for _ in range(2))
    for item, passed in zip(bank.item_ids, population.draw(59), strict=True):
        graded.observe(item, bool(passed))
        if passed:
            crashing.observe(item, True)
        else:
            crashing.withdraw(item, "ungraded")
    truth = graded.estimate().value
    honest = crashing.estimate()
    assert honest.value > truth
    assert honest.lower <= truth <= honest.upper
    unavailable = AdaptiveEngine(bank)
    unavailable.withdraw(bank.item_ids[0], "unavailable")
    assert unavailable.estimate().n_items == 59
