"""Drift, range and full-run checks: found when planted, and rarely otherwise."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import AdaptiveError, Bank, CalibrationSettings, calibrate, simulate_population
from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.decision import evidence_of
from harness.adaptive.maintenance import (
    DriftState,
    Finding,
    FindingKind,
    Severity,
    ability_range,
    full_run_check,
    full_run_due,
    item_drift,
)

ITEMS = [f"item-{index}" for index in range(100)]
RUNS = 30


@cache
def history(seed: int) -> tuple[Bank, FloatArray, FloatArray]:
    """A bank of 80 past runs, 30 later runs of the same population, and their true logits."""
    bank = calibrate(simulate_population(seed, 80, ITEMS, 2).responses(), CalibrationSettings(dims=2)).bank
    later = simulate_population(seed, RUNS, ITEMS, 2, prefix="later")
    order = np.random.default_rng(seed).permutation(RUNS)
    return bank, later.responses().passes[order], (later.theta @ later.alpha.T - later.beta)[order]


def test_without_drift_nothing_is_found() -> None:
    found = [item_drift(history(seed)[0], history(seed)[1], np.ones((RUNS, 100))) for seed in range(6)]
    assert sum(bool(findings) for findings in found) <= 1


def test_items_that_break_or_leak_are_found_with_the_run_since_which() -> None:
    hits, wrong, since = 0, 0, []
    for seed in range(6):
        bank, passes, logits = history(seed)
        middling = np.argsort(np.abs(bank.beta))[:4]
        changed = passes.copy()
        rng = np.random.default_rng(seed)
        for item, shift in zip(middling, (-5.0, -5.0, 5.0, 5.0), strict=True):
            changed[8:, item] = rng.random(RUNS - 8) < sigmoid(logits[8:, item] + shift)
        for finding in item_drift(bank, changed, np.ones(changed.shape)):
            at = bank.index[finding.subject]
            assert finding.kind is FindingKind.ITEM_DRIFT
            hits, wrong = hits + (at in middling), wrong + (at not in middling)
            if at in middling:
                assert ("harder" in finding.sentence) == (at in middling[:2])
                since.append(finding.numbers["since_run"])
    assert hits >= 20
    assert wrong <= 1
    assert abs(np.median(since) - 8) <= 3


def test_many_drifted_items_are_the_bank_s_fault() -> None:
    bank, passes, logits = history(1)
    changed = passes.copy()
    rng = np.random.default_rng(0)
    for number, item in enumerate(np.argsort(np.abs(bank.beta))[:20]):
        changed[:, item] = rng.random(RUNS) < sigmoid(logits[:, item] + (6.0 if number % 2 else -6.0))
    first = item_drift(bank, changed, np.ones(changed.shape))[0]
    assert (first.kind, first.severity) == (FindingKind.BANK_DRIFT, Severity.ALARM)
    assert first.remedy == "Recalibrate on recent runs"


def test_a_better_agent_is_no_drift_and_missing_cells_tell_nothing() -> None:
    bank = history(0)[0]
    strong = np.random.default_rng(3).random((RUNS, 100)) < bank.probability(bank.prior_mean + np.array([1.5, 0.0]))
    assert item_drift(bank, strong.astype(float), np.ones(strong.shape)) == ()
    nothing = np.zeros(100)
    state = DriftState.start(100).advance(bank, nothing, nothing)
    assert not state.sums.any()
    assert state.findings(bank) == ()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_run_by_run_is_the_same_as_all_at_once_to_the_bit(seed: int, runs: int) -> None:
    bank = history(0)[0]
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, 3, (runs, 100)).astype(float)
    passes = np.floor(trials * rng.random((runs, 100)) + 0.5)
    state = DriftState.start(100)
    for won, tried in zip(passes, trials, strict=True):
        state = state.advance(bank, won, tried)
    assert np.isfinite(state.sums).all()
    assert (state.sums >= 0).all()
    assert state.findings(bank) == item_drift(bank, passes, trials)


def test_abilities_from_the_calibrated_population_are_inside_and_a_jump_is_outside() -> None:
    found: list[Finding | None] = []
    for seed in range(6):
        bank, passes, _ = history(seed)
        seen = evidence_of(bank, passes, np.ones(passes.shape))
        found += [
            ability_range(bank, theta, covariance=error)
            for theta, error in zip(seen.theta, seen.covariance, strict=True)
        ]
    kinds = [finding.kind for finding in found if finding is not None]
    assert kinds.count(FindingKind.ABILITY_JUMP) <= 0.005 * len(found)
    assert len(kinds) <= 0.04 * len(found)
    bank = history(0)[0]
    assert bank.past_covariance is not None
    spread = np.linalg.cholesky(bank.past_covariance)
    away = bank.prior_mean + spread @ np.array([4.5, 0.0])
    jump = ability_range(bank, away, "run-7")
    assert jump is not None
    assert (jump.kind, jump.severity, jump.subject) == (FindingKind.ABILITY_JUMP, Severity.ALARM, "run-7")
    assert jump.numbers["distance"] == pytest.approx(4.5)
    assert jump.as_event()["kind"] == "ability_jump"
    edge = ability_range(bank, bank.prior_mean + spread @ np.array([3.0, 0.0]))
    assert edge is not None
    assert edge.kind is FindingKind.EDGE_OF_RANGE


def test_a_suite_that_is_as_good_as_settled_is_the_edge() -> None:
    bank = history(0)[0]
    easy = Bank(
        bank.item_ids,
        bank.alpha,
        bank.beta - 30.0,
        bank.prior_mean,
        bank.prior_covariance,
        bank.provenance,
        bank.calibrated,
    )
    found = ability_range(easy, easy.prior_mean)
    assert found is not None
    assert (found.kind, found.severity) == (FindingKind.EDGE_OF_RANGE, Severity.WARNING)
    assert found.numbers["informative_share"] == 0.0
    assert "Add items" in found.remedy


def test_full_runs_that_rank_otherwise_ask_for_recalibration() -> None:
    truths = np.linspace(0.2, 0.8, 10)
    assert full_run_check(truths + 0.01, truths, 0.02) == ()
    (found,) = full_run_check(truths[::-1], truths, 0.5)
    assert (found.kind, found.severity) == (FindingKind.RANKS_DISAGREE, Severity.ALARM)
    assert found.numbers["spearman"] == pytest.approx(-1.0)
    shuffled = truths[[2, 1, 0, 5, 4, 3, 8, 9, 6, 7]]
    assert full_run_check(shuffled, truths, 0.5) == ()
    (near,) = full_run_check(truths[[3, 0, 1, 2, 7, 6, 9, 4, 8, 5]][[0, 5, 2, 3, 4, 1, 6, 7, 8, 9]], truths, 0.5)
    assert near.severity is Severity.WARNING
    assert full_run_check(truths[:4][::-1], truths[:4], 0.5) == ()
    assert full_run_check([0.5] * 6, truths[:6], 0.5) == ()


def test_errors_that_rise_are_found_and_steady_ones_are_rarely_mistaken() -> None:
    rng = np.random.default_rng(5)
    truths = np.linspace(0.2, 0.8, 16)

    def share(scale: float, reference: float | None) -> float:
        found = 0
        for _ in range(400):
            noise = rng.normal(0.0, 0.0125, 16)
            noise[8:] *= scale
            findings = full_run_check(truths + noise, truths, reference)
            found += any(one.kind is FindingKind.ERROR_RISING for one in findings)
        return found / 400

    assert share(1.0, None) <= 0.09
    assert share(1.0, 0.01) <= 0.09
    assert share(3.0, None) >= 0.85
    assert share(3.0, 0.01) >= 0.9


def test_a_full_run_falls_due() -> None:
    assert full_run_due(9) is None
    due = full_run_due(10)
    assert due is not None
    assert due.kind is FindingKind.FULL_RUN_DUE


def test_nonsense_is_refused() -> None:
    with pytest.raises(AdaptiveError, match="full_run_check"):
        full_run_check([0.1], [0.1, 0.2])
    with pytest.raises(AdaptiveError, match="full_run_check"):
        full_run_check([float("nan")], [0.1])
    with pytest.raises(AdaptiveError, match="reference 0"):
        full_run_check([0.1], [0.1], 0.0)
    with pytest.raises(AdaptiveError, match="full_run_due"):
        full_run_due(-1)
    with pytest.raises(AdaptiveError, match="alpha 1"):
        DriftState.start(100).findings(history(0)[0], 1.0)
