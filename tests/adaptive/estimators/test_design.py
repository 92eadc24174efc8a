"""Design-based estimators: LURE's own formula, no bias under a wrong model, errors as large as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive.arrays import FloatArray
from harness.adaptive.estimators import Difference, Lure, PosteriorPredictive, SampleMean
from harness.adaptive.estimators.lure import control_of
from harness.adaptive.estimators.steps import Steps
from harness.adaptive.evidence import Evidence
from harness.adaptive.policies import policy_named

from ..banks import random_bank
from .finite import agent, played

N = 40
BANK = random_bank(3, n=N, d=2)
# The bank has it backwards: what it takes for easy is hard.
OUTCOMES = (np.random.default_rng(0).random(N) < 1 / (1 + np.exp(-BANK.beta))).astype(float)


def lure_by_the_paper(evidence: Evidence, control: FloatArray) -> float:
    """Equations 4 and 5 of Kossen et al. 2021, term by term."""
    m_total, total = int(evidence.executed), 0.0
    for m in range(1, m_total + 1):
        item, q = int(evidence.items[m - 1]), float(evidence.probability[m - 1])
        v = 1 + (N - m_total) / (N - m) * (1 / ((N - m + 1) * q) - 1)
        total += v * (evidence.rates[m - 1] - control[item])
    return float(control.mean() + total / m_total)


@pytest.mark.parametrize("control", ["model", "prior", "none"])
@pytest.mark.parametrize("policy", ["pass_rate+0.3", "random"])
def test_lure_is_the_published_formula(control: str, policy: str) -> None:
    evidence = played(BANK, OUTCOMES, policy_named(policy), 12, range(6))
    lure = Lure(control)  # type: ignore[arg-type]
    predicted = control_of(evidence, lure.control)
    total = lure.total(evidence, predicted)
    for row in range(6):
        expected = lure_by_the_paper(agent(evidence, row), predicted[row])
        assert predicted[row].mean() + total.value[row] / N == pytest.approx(expected, abs=1e-12)


def test_of_random_draws_the_plain_one_is_the_sample_mean() -> None:
    evidence = played(BANK, OUTCOMES, policy_named("random"), 12, range(6))
    np.testing.assert_allclose(Lure("none").moments(evidence).value, SampleMean().moments(evidence).value)
    q = control_of(evidence, "model")
    expected = q.mean(axis=1) + (evidence.rates - evidence.of_executed(q)).mean(axis=1)
    total = Difference().total(evidence, q)
    np.testing.assert_allclose(q.mean(axis=1) + total.value / N, expected)


@pytest.mark.parametrize(
    ("policy", "in_flight"), [("pass_rate+0.3", 1), ("pass_rate+0.3", 3), ("d_optimal+0.5", 1), ("random", 3)]
)
def test_unbiased_under_an_adaptive_policy_and_a_wrong_bank(policy: str, in_flight: int) -> None:
    evidence = played(BANK, OUTCOMES, policy_named(policy), 15, range(1200), in_flight)
    truth = OUTCOMES.mean()
    for estimator, control in ((Lure("none"), "none"), (Lure("prior"), "prior"), (Difference(), "prior")):
        predicted = control_of(evidence, control)  # type: ignore[arg-type]
        total = estimator.total(evidence, predicted)
        assert total.usable.mean() > 0.99  # without a draw in 15 steps there is nothing to average
        error = (predicted.sum(axis=1) + total.value)[total.usable] / N - truth
        assert abs(error.mean()) < 3.5 * error.std() / np.sqrt(len(error))
        said = np.sqrt(total.variance[total.usable].mean()) / N
        assert 0.85 < said / error.std() < 1.3
    if policy != "random":
        model = control_of(evidence, "model")
        biased = (evidence.score + (model * evidence.rest).sum(axis=1)) / N - truth
        assert abs(biased.mean()) > 0.05  # what there is to correct


def test_the_model_as_control_costs_little_bias() -> None:
    evidence = played(BANK, OUTCOMES, policy_named("pass_rate+0.3"), 15, range(800))
    for estimator in (Lure(), Difference()):
        bias = abs(estimator.moments(evidence).value.mean() - OUTCOMES.mean())
        model = PosteriorPredictive().moments(evidence).value.mean() - OUTCOMES.mean()
        assert bias < 0.25 * abs(model)


def test_a_right_model_as_control_takes_variance_off() -> None:
    sharp = replace(BANK, beta=np.where(OUTCOMES > 0, -2.5, 2.5))
    evidence = played(sharp, OUTCOMES, policy_named("random"), 15, range(400))
    plain, assisted = (Lure(control).moments(evidence).value for control in ("none", "prior"))
    assert assisted.std() < 0.5 * plain.std()


def test_steps_are_put_in_order_of_choice() -> None:
    evidence = played(BANK, OUTCOMES, policy_named("random"), 10, [1])
    shuffled = np.array([3, 0, 1, 2, 9, 4, 7, 5, 8, 6])
    names = ("items", "passes", "trials", "probability", "pool", "random")
    other = replace(evidence, **{name: getattr(evidence, name)[:, shuffled] for name in names})
    steps = Steps.of(other)
    np.testing.assert_array_equal(np.take_along_axis(other.items, steps.order, axis=1), evidence.items)
    np.testing.assert_array_equal(steps.pool, [np.arange(40, 30, -1)])
    assert Lure().moments(other).value == pytest.approx(Lure().moments(evidence).value)
