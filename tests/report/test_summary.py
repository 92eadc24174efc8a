"""Summaries and their text: never a bare rate, never a silent zero."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.summary import Summary, summarise
from harness.report.text import score_line, spend_line, summary_text, trials_text
from harness.store.memory import MemoryStore
from tests.runner.scenes import make_plan, make_row, make_task

KEYS = {"run", "planned", "outcomes", "stops", "score", "interval", "cost_usd", "trials"}
TRIAL_KEYS = {"task", "outcome", "reason", "stop", "trial"}


def stored(outcomes: Sequence[Outcome | None], **config: Any) -> Summary:
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
    return summarise(store, "r1")


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


def test_an_unknown_cost_is_a_lower_bound_in_words() -> None:
    summary = stored([Outcome.PASSED]).model_copy(update={"cost_usd": None, "cost_at_least_usd": 0.25, "tokens": 1000})
    assert "at least $0.2500" in spend_line(summary)
