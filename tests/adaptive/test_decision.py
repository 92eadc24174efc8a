"""Decisions against a baseline: exact at the end, paired, and with the error rates they claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import AbilityState, Baseline, DecisionSettings, Verdict, decide, policy_named, prior_bank
from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.decision import Difference, Side, bounds_of, difference_of, evidence_of, verdict_of
from harness.adaptive.decision.sequential import SLOPES, WEIGHTS, linear_reach
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence
from harness.adaptive.planning.trajectories import Study, run_study

from .banks import random_bank

BANK = random_bank(8, n=80, d=2)


def tables(seed: int, share: float = 1.0, agents: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Passes and trials of agents of mean ability, a share of the items run."""
    rng = np.random.default_rng(seed)
    shape = (80,) if agents is None else (agents, 80)
    trials = (rng.random(shape) < share).astype(float)
    return (rng.random(shape) < BANK.probability(np.zeros(2))) * trials, trials


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.02, 0.1]))
def test_when_all_has_run_the_decision_is_that_of_the_full_runs(a: int, b: int, margin: float) -> None:
    candidate, baseline = tables(a), tables(b)
    found = decide(evidence_of(BANK, *candidate), evidence_of(BANK, *baseline), margin)
    difference = float(candidate[0].mean() - baseline[0].mean())
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert found.lower == pytest.approx(difference, abs=1e-12)
    assert found.upper == pytest.approx(difference, abs=1e-12)
    assert (found.remaining, found.paired, found.standard_error) == (0, 80, 0.0)
    assert found.verdict is not Verdict.UNDECIDED
    if abs(difference + margin) > 1e-9:
        assert found.verdict.passes is (difference > -margin)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["suite", "agent"]))
def test_bounds_enclose_the_estimate_and_what_is_possible(seed: int, ran: float, known: float, truth: str) -> None:
    candidate, baseline = tables(seed, ran), tables(seed + 1, known)
    rule = DecisionSettings(truth="agent" if truth == "agent" else "suite")
    found = decide(evidence_of(BANK, *candidate), evidence_of(BANK, *baseline), 0.02, 0.05, rule)
    assert -1 <= found.lower <= found.upper <= 1
    assert np.isfinite([found.difference, found.standard_error]).all()
    if truth == "suite":
        score, base = candidate[0].sum(), baseline[0].sum()
        least = (score - base - (80 - baseline[1].sum())) / 80
        most = (score + (80 - candidate[1].sum()) - base) / 80
        assert least - 1e-12 <= found.lower <= found.upper <= most + 1e-12
    assert decide(evidence_of(BANK, *candidate), evidence_of(BANK, *baseline), 0.02, 0.05, rule) == found


def test_many_agents_at_once_are_as_one_by_one() -> None:
    candidate, baseline = tables(1, 0.4, 5), tables(2, 0.8, 5)
    many = difference_of(evidence_of(BANK, *candidate), Side(evidence_of(BANK, *baseline)))
    for agent in range(5):
        one = difference_of(
            evidence_of(BANK, candidate[0][agent], candidate[1][agent]),
            Side(evidence_of(BANK, baseline[0][agent], baseline[1][agent])),
        )
        for name in ("value", "standard_error", "prior_error", "final_error", "least", "most", "carry"):
            assert getattr(many, name)[agent] == pytest.approx(float(getattr(one, name)), abs=1e-9), name


def test_an_agent_that_repeats_the_baseline_is_known_much_sooner() -> None:
    passes, trials = tables(5)
    run = trials * (np.arange(80) < 40)
    baseline = Baseline.of_run(evidence_of(BANK, passes, trials))
    paired = decide(evidence_of(BANK, passes * run, run), baseline)
    alone = decide(evidence_of(BANK, passes * run, run), float(passes.mean()))
    assert paired.carry > 0.6
    assert alone.carry == 0
    assert paired.standard_error < 0.85 * alone.standard_error
    assert abs(paired.difference) < abs(alone.difference)
    assert (paired.paired, alone.paired) == (40, 0)


def test_a_partial_baseline_costs_precision_and_items_only_one_of_them_has_are_left_out() -> None:
    candidate, (passes, trials) = tables(1, 0.5), tables(2)
    half = trials * (np.arange(80) % 2)
    full = decide(evidence_of(BANK, *candidate), evidence_of(BANK, passes, trials))
    part = decide(evidence_of(BANK, *candidate), evidence_of(BANK, passes * half, half))
    assert part.standard_error > full.standard_error
    outcomes = {item: bool(passes[at]) for at, item in enumerate(BANK.item_ids[:60])} | {"elsewhere": True}
    smaller = decide(evidence_of(BANK, *candidate), Baseline.of_outcomes(BANK, outcomes, outcomes))
    assert smaller.n_items == 60
    assert smaller.executed + smaller.remaining == 60


def test_outcomes_by_name_make_the_state_that_the_engine_makes() -> None:
    passes, _ = tables(3)
    state = AbilityState.rebuild(BANK, [(at, bool(passes[at])) for at in range(80)])
    known = Baseline.of_outcomes(BANK, {item: bool(passes[at]) for at, item in enumerate(BANK.item_ids)}).known
    assert isinstance(known, Side)
    np.testing.assert_allclose(known.evidence.theta, state.theta, atol=1e-9)
    np.testing.assert_array_equal(known.rates, passes)
    repeated = Baseline.of_outcomes(BANK, {"item-0": (2, 4)})
    assert isinstance(repeated.known, Side)
    assert repeated.known.rates[0] == 0.5
    assert repr(repeated) != repr(Baseline.of_outcomes(BANK, {"item-0": (1, 4)}))


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"),
    [
        (0.01, 0.05, Verdict.BETTER),
        (-0.01, 0.05, Verdict.NO_WORSE),
        (-0.015, -0.005, Verdict.NO_WORSE),
        (-0.03, -0.001, Verdict.WORSE),
        (-0.03, 0.01, Verdict.UNDECIDED),
    ],
)
def test_the_verdict_of_bounds_at_a_margin_of_two_points(lower: float, upper: float, verdict: Verdict) -> None:
    assert verdict_of(lower, upper, 0.02) is verdict


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 0.5), st.floats(1e-4, 0.5))
def test_the_linear_reach_is_where_the_mixture_meets_its_level(information: float, scale: float, rate: float) -> None:
    reach = float(linear_reach(np.array([information]), scale, rate)[0])
    slopes = np.array(SLOPES) * scale
    logs = np.log(WEIGHTS) + information * slopes * (reach - slopes / 2)
    assert np.logaddexp.reduce(logs) == pytest.approx(-np.log(rate), rel=1e-6, abs=1e-6)


def walks(ends: FloatArray, seed: int, n: int = 4000) -> FloatArray:
    """Brownian motion at the times `ends` (K,), (n, K)."""
    steps = np.random.default_rng(seed).normal(size=(n, len(ends))) * np.sqrt(np.diff(ends, prepend=0.0))
    return np.asarray(steps.cumsum(axis=1))


@pytest.mark.parametrize("final", [0.0, 0.02])
@pytest.mark.parametrize("truth", [0.0, -0.02])
def test_looking_after_every_outcome_errs_as_rarely_as_promised(final: float, truth: float) -> None:
    """Gaussian evidence, 400 looks, at both edges of the margin, with a vague prior."""
    errors = np.maximum(np.linspace(0.1, 0.0, 401)[1:] ** 1.5 / 0.1**0.5, max(final, 1e-4))
    prior = 0.3
    information = 1 / errors**2 - 1 / prior**2
    level = truth + walks(information, seed=1) / information
    value = level * information * errors**2
    whole = np.ones(errors.shape)
    path = Difference(
        value=value,
        standard_error=whole * errors,
        prior_value=whole * 0.0,
        prior_error=whole * prior,
        final_error=whole * final,
        least=-whole,
        most=whole,
        n_items=whole.astype(np.int64),
        paired=whole.astype(np.int64),
        carry=whole,
    )
    bounds = bounds_of(path, 0.02, 0.05, 0.1)
    false_alarms = (bounds.upper < truth).any(axis=1).mean()
    missed = (bounds.lower > truth).any(axis=1).mean()
    assert false_alarms <= 0.055
    assert missed <= 0.11
    assert false_alarms > 0.01, "bounds that never err are too wide"
    naive = (value + normal_quantile(0.95) * errors < truth).any(axis=1).mean()
    assert naive > 0.15


class Recorder:
    """An estimator that keeps every difference it is asked for."""

    name = "recorder"

    def __init__(self, baseline: Side) -> None:
        self.baseline = baseline
        self.kept: list[Difference] = []

    def moments(self, evidence: Evidence) -> Moments:
        self.kept.append(difference_of(evidence, self.baseline))
        return Moments(self.kept[-1].value, self.kept[-1].standard_error)


def test_false_alarms_and_misses_of_adaptive_runs_stay_under_their_rates() -> None:
    bank = replace(random_bank(21, n=120, d=2), prior_mean=np.zeros(2), prior_covariance=np.eye(2))
    rng = np.random.default_rng(4)
    theta = np.repeat(rng.normal(size=(60, 2)) * 0.7, 3, axis=0)
    shift = np.tile([0.0, -0.6, 0.3], 60)[:, None]
    baseline = (rng.random((180, 120)) < bank.probability(theta)).astype(float)
    candidate = (rng.random((180, 120)) < bank.probability(theta + shift)).astype(float)
    everything = np.ones(candidate.shape)
    recorder = Recorder(Side(evidence_of(bank, baseline, everything)))
    run_study(bank, candidate, everything, Study(policy_named("pass_rate"), (recorder,), tuple(range(1, 121))))
    truth = candidate.mean(axis=1) - baseline.mean(axis=1)
    worse, fine = np.zeros((2, 180), dtype=bool)
    tasks = np.zeros(180)
    for number, found in enumerate(recorder.kept, start=1):
        bounds = bounds_of(found, 0.04, 0.05, 0.05)
        running = ~worse & ~fine & (number >= 20)
        fine |= running & (bounds.lower > -0.04)
        worse |= running & ~fine & (bounds.upper < 0)
        tasks[running] = number
    assert worse[truth >= 0].mean() <= 0.05
    assert fine[truth <= -0.04].mean() <= 0.05
    assert (worse | fine).all()
    assert tasks.mean() < 80


def test_widening_by_factor_or_by_tasks_widens_the_bounds_alike() -> None:
    run = evidence_of(BANK, *tables(1, 0.5))
    tasks = int(run.executed)
    plain = decide(run, 0.5)
    twice = decide(run, 0.5, settings=DecisionSettings(widening=2.0))
    assert twice.standard_error == pytest.approx(2 * plain.standard_error)
    assert twice.upper - twice.lower > plain.upper - plain.lower
    pairs = DecisionSettings(widening=((tasks - 10, 1.0), (tasks + 10, 3.0)))
    assert decide(run, 0.5, settings=pairs) == twice
    assert DecisionSettings(widening=()).widening_at(5) == 1.0


def test_what_cannot_be_compared_is_refused() -> None:
    run = evidence_of(BANK, *tables(1))
    other = evidence_of(prior_bank(["x"]), np.ones(1), np.ones(1))
    with pytest.raises(EngineError, match="not the same in the same order"):
        decide(run, other)
    with pytest.raises(EngineError, match="no outcome on any item"):
        Baseline.of_outcomes(BANK, {"elsewhere": True})
    with pytest.raises(EngineError, match="3 passes in 2 trials"):
        Baseline.of_outcomes(BANK, {"item-0": (3, 2)})
    with pytest.raises(EngineError, match="margin 1"):
        decide(run, 0.5, margin=1.0)
    with pytest.raises(EngineError, match="alpha 0"):
        decide(run, 0.5, alpha=0.0)
    with pytest.raises(EngineError, match="widening 0"):
        DecisionSettings(widening=0.0)
    empty = evidence_of(BANK, np.zeros(80), np.zeros(80), np.zeros(80, dtype=bool))
    with pytest.raises(EngineError, match="no item in common"):
        decide(empty, 0.5)


def test_before_the_first_outcome_nothing_is_decided_and_the_sentence_is_plain() -> None:
    found = decide(evidence_of(BANK, np.zeros(80), np.zeros(80)), 0.5)
    assert found.verdict is Verdict.UNDECIDED
    assert found.verdict.passes is None
    assert (found.lower, found.upper) == (-0.5, 0.5)
    assert found.sentence.startswith("Undecided: ")
    assert found.as_event()["verdict"] == "undecided"
