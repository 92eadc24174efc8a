"""Estimates of stored runs: the same as the engine's that ran them, taken apart into parts that add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import Withdrawal, save_bank
from harness.api.estimates import appraise
from harness.records.errors import ConfigError, StoreError
from harness.records.vocabulary import Outcome, Reason
from harness.report.estimates import estimate_text
from tests.adaptive.banks import random_bank
from tests.api.stored_runs import adaptive_run, fixed_run

BANK = random_bank(4, n=40, d=2)
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED
OUTCOMES = {item: PASSED if number % 3 else FAILED for number, item in enumerate(BANK.item_ids)}


def test_an_adaptive_run_has_its_own_engines_estimate(tmp_path: Path) -> None:
    engine = adaptive_run(tmp_path, BANK, OUTCOMES)
    report = appraise("run-a", str(tmp_path))
    found = engine.estimate()
    told = (report.value, report.lower, report.upper, report.standard_error, report.level)
    assert told == (found.value, found.lower, found.upper, found.standard_error, found.level)
    assert (report.executed, report.predicted, report.tasks) == (10, 30, 40)
    assert report.passed_share + report.predicted_share == pytest.approx(report.value)
    assert report.passed_share == sum(engine.state.passes) / 40
    assert report.ended is not None
    assert "10 tasks" in report.ended


def test_one_more_task_is_the_policys_next_and_makes_the_error_smaller(tmp_path: Path) -> None:
    longer = adaptive_run(tmp_path, BANK, OUTCOMES, run="run-b", stop=11)
    adaptive_run(tmp_path, BANK, OUTCOMES)
    report = appraise("run-a", str(tmp_path))
    assert report.next_task == BANK.item_ids[longer.state.items[10]]
    assert report.error_after is not None
    assert 0 < report.error_after < report.standard_error


def test_what_one_more_task_brings_is_widened_like_the_estimate(tmp_path: Path) -> None:
    adaptive_run(tmp_path, BANK, OUTCOMES)
    adaptive_run(tmp_path, BANK, OUTCOMES, run="run-w", widening=((10, 2.0), (11, 1.5)))
    plain, wide = appraise("run-a", str(tmp_path)), appraise("run-w", str(tmp_path))
    assert plain.error_after is not None
    assert wide.standard_error == pytest.approx(2.0 * plain.standard_error)
    assert wide.error_after == pytest.approx(1.5 * plain.error_after)


def test_ungraded_tasks_are_predicted_and_unavailable_ones_left_out(tmp_path: Path) -> None:
    first = adaptive_run(tmp_path, BANK, OUTCOMES, run="run-b")
    lost, broken = (BANK.item_ids[at] for at in first.state.items[:2])
    outcomes: dict[str, Outcome | Reason] = {**OUTCOMES, lost: Reason.GRADER_TIMEOUT, broken: Reason.IMAGE_MISSING}
    engine = adaptive_run(tmp_path, BANK, outcomes)
    assert {kind for kind, _ in engine.state.withdrawn.values()} == set(Withdrawal)
    report = appraise("run-a", str(tmp_path))
    assert (report.ungraded, report.unavailable) == (1, 1)
    assert (report.tasks, report.executed, report.predicted) == (39, 10, 29)
    assert "1 ungraded (predicted), 1 unavailable (left out)" in estimate_text(report)


def test_a_full_fixed_run_is_its_own_pass_rate_with_or_without_a_bank(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids, {item: [outcome] for item, outcome in OUTCOMES.items()})
    save_bank(BANK, tmp_path / "bank.npz")
    for bank in (None, str(tmp_path / "bank.npz")):
        report = appraise("run-f", str(tmp_path), bank)
        assert report.value == pytest.approx(26 / 40)
        assert (report.standard_error, report.next_task, report.error_after) == (0, None, None)
        assert "nothing is left to run" in estimate_text(report)
    assert report.bank == BANK.digest


def test_a_partial_fixed_run_counts_repeats_and_says_that_it_has_no_bank(tmp_path: Path) -> None:
    tasks = BANK.item_ids[:10]
    outcomes = {tasks[0]: [PASSED, FAILED], tasks[1]: [PASSED, Outcome.UNGRADED], tasks[2]: [Outcome.UNGRADED]}
    fixed_run(tmp_path, tasks, outcomes)
    report = appraise("run-f", str(tmp_path))
    assert (report.executed, report.ungraded, report.tasks) == (2, 1, 10)
    assert report.passed_share == pytest.approx((0.5 + 1.0) / 10)
    assert "no bank" in report.notes[0]


def test_outcomes_against_the_bank_are_a_misfit_and_named(tmp_path: Path) -> None:
    beta = np.linspace(-4, 4, 40)
    bank = replace(BANK, alpha=np.ones((40, 2)) * [1.5, 0.0], beta=beta, prior_mean=np.zeros(2))
    fixed_run(
        tmp_path,
        bank.item_ids,
        {item: [FAILED if b < 0 else PASSED] for item, b in zip(bank.item_ids, beta, strict=True)},
    )
    save_bank(bank, tmp_path / "bank.npz")
    report = appraise("run-f", str(tmp_path), str(tmp_path / "bank.npz"))
    assert report.misfits
    assert {report.surprises[0].task, report.surprises[1].task} == {bank.item_ids[0], bank.item_ids[39]}
    text = estimate_text(report)
    assert "CONTRADICT" in text
    assert f"{bank.item_ids[39]} passed at" in text
    agreeing = {item: [PASSED if b < 0 else FAILED] for item, b in zip(bank.item_ids, beta, strict=True)}
    fixed_run(tmp_path, bank.item_ids, agreeing, run="run-g")
    assert not appraise("run-g", str(tmp_path), str(tmp_path / "bank.npz")).misfits


def test_an_ability_outside_of_what_the_bank_knows_is_said(tmp_path: Path) -> None:
    known = replace(BANK, provenance=replace(BANK.provenance, method="2pl"))
    bank = replace(
        known, alpha=np.ones((40, 2)) * [1.5, 0.1], prior_mean=np.array([-2.0, 0.0]), prior_covariance=0.3 * np.eye(2)
    )
    fixed_run(tmp_path, bank.item_ids, {item: [PASSED] for item in bank.item_ids})
    save_bank(bank, tmp_path / "bank.npz")
    [note] = appraise("run-f", str(tmp_path), str(tmp_path / "bank.npz")).notes
    assert "standard deviations from the mean of the calibrated runs" in note
    fixed_run(tmp_path, bank.item_ids, {item: [outcome] for item, outcome in OUTCOMES.items()}, run="run-g")
    wide = replace(known, prior_covariance=9 * np.eye(2))
    save_bank(wide, tmp_path / "wide.npz")
    assert appraise("run-g", str(tmp_path), str(tmp_path / "wide.npz")).notes == ()


def test_nothing_to_estimate_is_said(tmp_path: Path) -> None:
    outcomes = dict.fromkeys(BANK.item_ids, Reason.IMAGE_MISSING)
    adaptive_run(tmp_path, BANK, outcomes)
    with pytest.raises(ConfigError, match=r"run-a.*nothing to estimate"):
        appraise("run-a", str(tmp_path))
    with pytest.raises(StoreError, match="run-x"):
        appraise("run-x", str(tmp_path))


def test_a_run_before_its_first_outcome_has_a_finite_estimate(tmp_path: Path) -> None:
    fixed_run(tmp_path, BANK.item_ids, {})
    report = appraise("run-f", str(tmp_path))
    assert (report.executed, report.passed_share, report.fit) == (0, 0.0, None)
    assert 0 < report.value < 1
    assert "not to be told yet" in estimate_text(report)
