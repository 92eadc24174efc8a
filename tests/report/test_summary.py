"""Summaries and their text: never a bare rate, never a silent zero."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.request import DEFAULT_STORE
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.summary import RunState, Summary, summarise
from harness.report.text import score_line, spend_line, store_option, summary_text, trials_text
from harness.runner.journal import Journal
from harness.runner.run import HALTED, RESUMED, STARTED
from harness.runner.schedule import STOP
from harness.store.memory import MemoryStore
from tests.runner.scenes import adaptive_config, make_plan, make_row, make_task

KEYS = {"run", "planned", "outcomes", "stops", "score", "interval", "cost_usd", "trials"}
TRIAL_KEYS = {"task", "outcome", "reason", "stop", "trial"}


def stored(outcomes: Sequence[Outcome | None], **config: Any) -> Summary:
    """The summary of :func:`store_of`."""
    return summarise(store_of(outcomes, **config), "r1")


def store_of(outcomes: Sequence[Outcome | None], **config: Any) -> MemoryStore:
    """A run with one slot per outcome; None: never begun."""
    store = MemoryStore()
    tasks = [make_task(f"t{number}") for number in range(len(outcomes))]
    store.create_run(make_row(tasks, **config))
    for slot, outcome in enumerate(outcomes):
        if outcome is None:
            continue
        plan = make_plan(tasks[slot], slot=slot, trial=f"r1.{slot:04}.1")
        store.plan([plan])
        reason = None if outcome.graded else Reason.GRADER_TIMEOUT
        result = TrialResult(trial=plan.trial, outcome=outcome, reason=reason, stop=StopReason.FINISHED, cost_usd=0.0)
        store.finish(result, [])
    return store


def test_scripts_get_every_key_null_when_there_is_no_value() -> None:
    plain = json.loads(json.dumps(stored([Outcome.PASSED, None]).plain(), allow_nan=False))
    assert set(plain) >= KEYS
    assert set(plain["outcomes"]) == {"passed", "failed", "ungraded", "invalid"}
    assert set(plain["trials"][0]) >= TRIAL_KEYS
    assert plain["trials"][0]["reason"] is None
    assert json.loads(json.dumps(stored([None]).plain()))["score"] is None


def test_missing_grades_widen_the_interval_and_never_count_as_zero() -> None:
    six_two_two = [Outcome.PASSED] * 6 + [Outcome.FAILED] * 2 + [Outcome.UNGRADED] * 2
    summary = stored(six_two_two)
    assert (summary.score, summary.interval, summary.coverage) == (6 / 8, (0.6, 0.8), 0.8)
    assert "6/8 graded" in score_line(summary)
    assert "[60.0, 80.0]" in score_line(summary)
    assert not summary.complete


def test_a_source_example_of_coverage() -> None:
    """SOURCES S2: A 30/100 passed with 50 graded → [30 %, 80 %]; B 43/100 with 98 graded → [43 %, 45 %]."""
    a = stored([Outcome.PASSED] * 30 + [Outcome.FAILED] * 20 + [Outcome.UNGRADED] * 50)
    b = stored([Outcome.PASSED] * 43 + [Outcome.FAILED] * 55 + [None] * 2)
    assert a.interval == (0.30, 0.80)
    assert b.interval == pytest.approx((0.43, 0.45))


def test_nothing_graded_has_no_score() -> None:
    summary = stored([Outcome.UNGRADED] * 3)
    assert summary.score is None
    assert score_line(summary) == "none: nothing was graded"


@given(st.lists(st.sampled_from([*Outcome, None]), min_size=1, max_size=12))
def test_the_score_lies_in_the_interval_and_counts_add_up(outcomes: list[Outcome | None]) -> None:
    summary = stored(outcomes)
    assert summary.interval is not None
    lower, upper = summary.interval
    assert 0 <= lower <= upper <= 1
    if summary.score is not None and summary.complete:
        assert lower == upper == pytest.approx(summary.score)
    assert sum(summary.outcomes.values()) == sum(outcome is not None for outcome in outcomes)
    text = summary_text(summary, ".assay") + trials_text(summary)
    assert "r1" in text


def test_an_audit_and_overridden_budgets_are_stamped() -> None:
    summary = stored([Outcome.PASSED], budget=Budget(steps=3))
    assert any("steps=3" in warning for warning in summary.warnings)
    store = MemoryStore()
    row = make_row([make_task()])
    gold = SolverSpec(name="reference", uses_solution=True)
    config = row.config.model_copy(update={"solver": gold})
    store.create_run(row.model_copy(update={"config": config}))
    assert any("reference solution" in warning for warning in summarise(store, "r1").warnings)


def attempts(*ends: tuple[Outcome, Reason | None, StopReason, str]) -> MemoryStore:
    """One slot with an attempt for each end."""
    store = MemoryStore()
    task = make_task()
    store.create_run(make_row([task]))
    for number, (outcome, reason, stop, said) in enumerate(ends, start=1):
        plan = make_plan(task, trial=f"r1.0000.{number}", attempt=number)
        store.plan([plan])
        result = TrialResult(trial=plan.trial, outcome=outcome, reason=reason, stop=stop, stop_detail=said)
        store.finish(result, [])
    return store


def test_further_attempts_say_what_they_followed() -> None:
    lost = (Outcome.UNGRADED, Reason.CONTAINER_LOST, StopReason.INFRASTRUCTURE, "")
    cancelled = (Outcome.UNGRADED, Reason.CANCELLED, StopReason.CANCELLED, "")
    slow = (Outcome.UNGRADED, Reason.GRADER_TIMEOUT, StopReason.FINISHED, "")
    passed = (Outcome.PASSED, None, StopReason.FINISHED, "")
    summary = summarise(attempts(lost, cancelled, cancelled, slow, passed), "r1")
    assert [note for note in summary.warnings if "followed" in note] == [
        "1 attempt(s) followed an infrastructure fault",
        "2 attempt(s) followed a cancellation",
        "1 attempt(s) followed one without a grade (grader.timeout)",
    ]
    assert not any("followed" in note for note in summarise(attempts(passed), "r1").warnings)


def test_a_crashed_solver_is_named_with_its_first_line_and_printably() -> None:
    crash = (Outcome.FAILED, None, StopReason.SOLVER_ERROR, "\nKeyError: 'x' \x1b[31m\nsecond line")
    summary = summarise(attempts(crash), "r1")
    (note,) = summary.warnings
    assert note == ("1 trial(s) ended in solver_error: KeyError: 'x' \\x1b[31m; assay trial r1.0000.1 --log error")
    assert "\x1b" not in summary_text(summary, ".assay") + trials_text(summary)
    assert "failed, stop solver_error: KeyError: 'x' \\x1b[31m second line" in trials_text(summary)
    assert summary.trials[0].plain()["stop_detail"].startswith("\nKeyError")


def test_what_was_odd_before_the_run_stays_in_sight() -> None:
    assert stored([Outcome.PASSED], extra={"notes": ["the key is not set"]}).warnings == ("the key is not set",)


def test_a_budget_stop_is_no_crash() -> None:
    stopped = (Outcome.FAILED, None, StopReason.STEPS, "2 of 2 steps taken")
    summary = summarise(attempts(stopped), "r1")
    assert summary.warnings == ()
    assert "failed, stop budget.steps: 2 of 2 steps taken" in trials_text(summary)


@pytest.mark.parametrize(
    ("ends", "owned", "halted", "state"),
    [
        ([Outcome.PASSED, Outcome.FAILED], False, False, RunState.COMPLETE),
        ([Outcome.PASSED, Outcome.FAILED], True, False, RunState.RUNNING),
        ([Outcome.PASSED, Outcome.UNGRADED], False, False, RunState.INCOMPLETE),
        ([Outcome.PASSED, None], False, False, RunState.INTERRUPTED),
        ([Outcome.UNGRADED, None], False, True, RunState.HALTED),
    ],
)
def test_a_run_says_how_far_it_is_and_what_to_do(
    ends: list[Outcome | None], owned: bool, halted: bool, state: RunState
) -> None:
    store = store_of(ends)
    if halted:
        Journal(store, "r1").note(HALTED, {"why": "no disk"})
    with store.own("r1") if owned else contextlib.nullcontext():
        summary = summarise(store, "r1")
    assert summary.state is state
    assert summary.plain()["state"] == state.value
    text = summary_text(summary, "/a store")
    assert ("assay resume r1 --store '/a store'" in text) == (state not in (RunState.COMPLETE, RunState.RUNNING))


def test_commands_name_a_store_that_is_not_the_usual_one() -> None:
    assert store_option(DEFAULT_STORE) == ""
    assert store_option("/a store") == " --store '/a store'"
    assert summary_text(stored([None]), DEFAULT_STORE).endswith("assay resume r1")


def test_a_cancelled_trial_was_not_carried_out() -> None:
    cancelled = (Outcome.UNGRADED, Reason.CANCELLED, StopReason.CANCELLED, "")
    summary = summarise(attempts(cancelled), "r1")
    assert (summary.state, summary.done, summary.outcomes[Outcome.UNGRADED]) == (RunState.INTERRUPTED, 0, 1)


def test_an_adaptive_run_is_interrupted_until_its_engine_has_stopped() -> None:
    """Its ungraded tasks are replaced by others, so that only the engine knows whether anything was left to do."""
    store = store_of([Outcome.PASSED, Outcome.UNGRADED], adaptive=adaptive_config(2))
    journal = Journal(store, "r1")
    journal.note(STARTED)
    assert summarise(store, "r1").state is RunState.INTERRUPTED
    journal.note(STOP, {"reason": "exhausted", "executed": 1, "detail": ""})
    assert summarise(store, "r1").state is RunState.INCOMPLETE
    journal.note(RESUMED)
    assert summarise(store, "r1").state is RunState.INTERRUPTED


def test_a_narrowed_run_names_what_it_was_about() -> None:
    narrowed = stored([Outcome.PASSED] * 3, extra={"suite_tasks": 560})
    estimated = narrowed.model_copy(update={"level": 0.95, "score_kind": "estimate (p_irt)"})
    assert "on 3 selected tasks of suite demo (560), version" in summary_text(narrowed, ".assay")
    assert "% of the 3 selected tasks of suite demo (560), 95 % interval" in score_line(estimated)
    assert (narrowed.selected, narrowed.suite_tasks) == (3, 560)
    whole = stored([Outcome.PASSED] * 3, extra={"suite_tasks": 3}).model_copy(update={"level": 0.95})
    assert "of the full suite" in score_line(whole)
    assert "selected" not in summary_text(whole, ".assay")


def test_a_mutated_run_lists_survivors_instead_of_a_score() -> None:
    store = store_of([Outcome.PASSED, Outcome.FAILED, Outcome.UNGRADED], solver=SolverSpec(name="mutated"))
    Journal(store, "r1.0000.1").note("solver.note", {"kind": "mutant", "body": '{"name": "drop-sort"}'})
    summary = summarise(store, "r1")
    assert summary.survivors is not None
    assert [survivor.plain() for survivor in summary.survivors] == [
        {"task": "t0", "trial": "r1.0000.1", "mutant": "drop-sort"}
    ]
    text = summary_text(summary, ".assay")
    assert "1 of 2 graded mutants survived" in text
    assert "survived  t0: drop-sort (r1.0000.1)" in text
    assert not any(line.startswith("score") for line in text.splitlines())
    assert stored([Outcome.PASSED]).survivors is None


def test_an_unknown_cost_is_a_lower_bound_in_words() -> None:
    summary = stored([Outcome.PASSED]).model_copy(update={"cost_usd": None, "cost_at_least_usd": 0.25, "tokens": 1000})
    assert "at least $0.2500" in spend_line(summary)


def test_a_cost_of_which_nothing_is_known_is_not_zero_dollars() -> None:
    crash = (Outcome.FAILED, None, StopReason.FINISHED, "")
    summary = summarise(attempts(crash), "r1")
    assert summary.cost_usd is None
    assert spend_line(summary).startswith("cost unknown;")


def test_why_an_adaptive_run_chose_no_further_task_is_told() -> None:
    store = store_of([Outcome.PASSED])
    assert summarise(store, "r1").ended is None
    Journal(store, "r1").note(STOP, {"reason": "items", "executed": 1, "detail": "1 of 1 tasks have run"})
    assert "ended     1 of 1 tasks have run" in summary_text(summarise(store, "r1"), ".assay")
