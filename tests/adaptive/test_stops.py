"""Stopping at a cost, at a time, at a decision: what counts, what is said, and the same bits again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.adaptive import (
    AdaptiveEngine,
    Baseline,
    Choice,
    CostStop,
    DecisionSettings,
    DecisionStop,
    EndReason,
    EngineSettings,
    Spent,
    Stop,
    StopRule,
    TimeStop,
    Verdict,
)
from harness.adaptive.errors import EngineError, StateError

from .banks import random_bank

BANK = random_bank(3, n=60, d=2)


def engine_with(*stops: StopRule) -> AdaptiveEngine:
    return AdaptiveEngine(BANK, EngineSettings(stops=stops, seed=4))


def pay(engine: AdaptiveEngine, *amounts: Spent) -> None:
    for spent in amounts:
        step = engine.next()
        assert isinstance(step, Choice)
        engine.observe(step.item, True, spent=spent)


def test_the_run_ends_once_the_known_costs_reach_the_limit() -> None:
    engine = engine_with(CostStop(1.0))
    pay(engine, Spent(0.4), Spent(0.4))
    assert isinstance(engine.next(), Choice)
    pay(engine, Spent(0.2))
    step = engine.next()
    assert isinstance(step, Stop)
    assert step.reason is EndReason.COST
    assert step.detail == "$1.00 spent, limit $1.00"


def test_an_unknown_cost_is_not_zero_and_the_reason_says_at_least() -> None:
    engine = engine_with(CostStop(1.0))
    pay(engine, Spent(0.5), Spent(), Spent(None, 3.0), Spent(0.5))
    step = engine.next()
    assert isinstance(step, Stop)
    assert step.detail == "at least $1.00 spent, limit $1.00; 2 of 4 attempts did not say"


def test_tasks_in_flight_count_with_the_mean_so_that_a_wave_does_not_overshoot() -> None:
    engine = engine_with(CostStop(1.0))
    pay(engine, Spent(0.25))
    waiting: list[str] = []
    while isinstance(step := engine.next(waiting), Choice):
        waiting.append(step.item)
    assert len(waiting) == 3
    assert step.detail == "$0.25 spent, about $0.75 in flight, limit $1.00"
    assert not step.final
    for item in waiting:
        engine.observe(item, False, spent=Spent(0.05))
    assert isinstance(engine.next(), Choice)


def test_nothing_known_never_stops_it() -> None:
    engine = engine_with(CostStop(0.01), TimeStop(0.01))
    pay(engine, *[Spent()] * 60)
    step = engine.next()
    assert isinstance(step, Stop)
    assert step.reason is EndReason.BANK_EXHAUSTED


def test_task_time_and_the_costs_of_withdrawn_tasks_count() -> None:
    engine = engine_with(TimeStop(100.0))
    pay(engine, Spent(duration_s=60.0))
    step = engine.next()
    assert isinstance(step, Choice)
    engine.withdraw(step.item, "ungraded", "no reward file", Spent(duration_s=40.0))
    stopped = engine.next()
    assert isinstance(stopped, Stop)
    assert (stopped.reason, stopped.detail) == (EndReason.TIME, "100 s of task time spent, limit 100 s of task time")


def test_an_outcome_told_twice_is_paid_once() -> None:
    engine = engine_with(CostStop(1.0))
    engine.observe("item-1", True, spent=Spent(0.9))
    engine.observe("item-1", True, spent=Spent(0.9))
    assert [spent.cost_usd for spent in engine.state.spent] == [0.9]


@given(
    st.lists(st.tuples(st.booleans(), st.none() | st.floats(0, 5), st.none() | st.floats(0, 1e4)), max_size=12),
    st.sets(st.integers(0, 11)),
)
def test_replay_knows_what_was_spent_to_the_bit(
    told: list[tuple[bool, float | None, float | None]], lost: set[int]
) -> None:
    engine, again = engine_with(CostStop(10.0), TimeStop(2e4)), engine_with(CostStop(10.0), TimeStop(2e4))
    for number, (passed, cost, seconds) in enumerate(told):
        if number in lost:
            engine.withdraw(f"item-{number}", "ungraded", "", Spent(cost, seconds))
        else:
            engine.observe(f"item-{number}", passed, spent=Spent(cost, seconds))
    again.replay(json.loads(json.dumps(engine.events)))
    assert again.state.spent == engine.state.spent
    assert again.events == engine.events
    assert again.next() == engine.next()


@pytest.mark.parametrize("amount", [-0.1, float("nan"), float("inf")])
def test_impossible_amounts_and_limits_are_refused(amount: float) -> None:
    with pytest.raises(StateError, match="cost_usd"):
        Spent(amount)
    with pytest.raises(EngineError, match="limit_usd"):
        CostStop(amount)
    with pytest.raises(EngineError, match="limit_s"):
        TimeStop(amount)


def test_the_run_ends_with_a_decision_says_which_and_replays_to_the_same_bits() -> None:
    baseline = Baseline.of_outcomes(BANK, dict.fromkeys(BANK.item_ids, True))
    settings = DecisionSettings(minimum_tasks=5)
    rule = DecisionStop(baseline, margin=0.05, settings=settings)
    engine = engine_with(rule)
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, False)
    assert step.reason is EndReason.DECISION
    assert step.detail.startswith("The candidate is worse than the baseline: -")
    assert 5 <= step.executed < 30
    assert rule.decision(engine.state).verdict is Verdict.WORSE
    again = engine_with(rule)
    again.replay(json.loads(json.dumps(engine.events)))
    assert again.next() == step
    assert "Baseline(outcomes=60 of 60, sha256=" in engine.describe()["stops"][0]


def test_a_decision_that_is_out_of_reach_is_given_up() -> None:
    known = {item: number % 3 > 0 for number, item in enumerate(BANK.item_ids)}
    rule = DecisionStop(Baseline.of_outcomes(BANK, known), 0.005, settings=DecisionSettings(truth="agent"), give_up=0.2)
    engine = engine_with(rule)
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, known[step.item])
    assert step.reason is EndReason.DECISION
    assert step.detail.startswith("Undecided")
    assert "Given up" in step.detail
    assert step.executed < 60


def test_ungraded_tasks_hold_a_verdict_back() -> None:
    baseline = Baseline.of_rate(0.5)
    rule = DecisionStop(baseline, margin=0.05)
    engine = engine_with(rule)
    for number in range(25):
        engine.observe(f"item-{number}", number % 25 < 2)
    assert rule.decision(engine.state).verdict is Verdict.WORSE
    for number in range(25, 60):
        engine.withdraw(f"item-{number}", "ungraded", "crashed")
    held = rule.decision(engine.state)
    assert held.verdict is Verdict.UNDECIDED
    assert held.upper > 0 > held.lower


def test_a_rule_without_sense_is_refused() -> None:
    with pytest.raises(EngineError, match="margin"):
        DecisionStop(Baseline.of_rate(0.5), margin=-0.1)
    with pytest.raises(EngineError, match="pass rate"):
        Baseline.of_rate(55.0)
