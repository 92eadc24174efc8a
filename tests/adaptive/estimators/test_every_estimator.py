"""What holds of every estimator: bounds, exactness, agents side by side, choices that nobody recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import AbilityState
from harness.adaptive.estimators import ESTIMATORS, Cached, Estimator, GpIrt, SampleMean
from harness.adaptive.estimators.protocol import allowed, estimate_of
from harness.adaptive.evidence import Draw
from harness.adaptive.policies import Cache, policy_named

from ..banks import random_bank
from .finite import agent, played, unrecorded

BANK = random_bank(8, n=24, d=2)
RNG = np.random.default_rng(5)
_VERDICT = np.where(RNG.random(24) < 0.3, RNG.integers(0, 2, 24).astype(float), np.nan)
ALL: list[Estimator] = [
    *ESTIMATORS,
    GpIrt(0.0004, 0.2),
    GpIrt(0.0, 0.0, SampleMean(), "gp_irt of nothing"),
    Cached(Cache(np.full(24, 3.0), np.full(24, 6.0), _VERDICT)),
]
each = pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.name)


@each
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_value_is_allowed_and_exact_at_the_end(estimator: Estimator, data: st.DataObject) -> None:
    outcomes = data.draw(st.lists(st.booleans(), min_size=24, max_size=24))
    order = data.draw(st.permutations(range(24)))
    k = data.draw(st.integers(0, 24))
    share = data.draw(st.sampled_from([None, 0.0, 0.2, 1.0]))
    state = AbilityState.start(BANK)
    for step, item in enumerate(order[:k]):
        pool = 24 - step
        random = share is not None and data.draw(st.booleans()) and share > 0
        q = 0.0 if share is None else share / pool + (1.0 - share) * (not random)
        state = state.observe(item, outcomes[item], draw=None if share is None else Draw(q, pool, random))
    found = estimator.moments(state.evidence)
    least, most = allowed(state.evidence)
    assert least - 1e-12 <= found.value <= most + 1e-12
    assert np.isfinite(found.standard_error)
    assert found.standard_error >= 0
    if k == 24:
        assert found.value == pytest.approx(np.mean(outcomes), abs=1e-12)
        assert found.standard_error == 0.0
    else:
        assert found.standard_error > 0 or estimator.name == "gp_irt of nothing"
    shown = estimate_of(estimator, state.evidence)
    assert 0.0 <= shown.lower <= shown.value <= shown.upper <= 1.0


@each
@pytest.mark.parametrize("name", ["pass_rate+0.4", "random", "d_optimal"])
def test_many_agents_at_once_get_what_each_gets_alone(estimator: Estimator, name: str) -> None:
    outcomes = (RNG.random(24) < 0.5).astype(float)
    evidence = played(BANK, outcomes, policy_named(name), 9, range(5), in_flight=2)
    evidence = replace(evidence, trials=evidence.trials * (np.arange(9) < [[9], [9], [6], [0], [1]]))
    evidence = replace(evidence, passes=np.minimum(evidence.passes, evidence.trials), rest=evidence.rest.copy())
    for row in range(5):
        evidence.rest[row, evidence.items[row][evidence.trials[row] == 0]] = True
    together = estimator.moments(evidence)
    for row in range(5):
        alone = estimator.moments(agent(evidence, row))
        assert together.value[row] == pytest.approx(float(alone.value), abs=1e-12)
        assert together.standard_error[row] == pytest.approx(float(alone.standard_error), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("lure", "posterior_predictive"),
        ("lure_prior", "posterior_predictive"),
        ("lure_plain", "sample_mean"),
        ("difference", "posterior_predictive"),
    ],
)
@pytest.mark.parametrize("policy", ["pass_rate+0.4", "pass_rate"])
def test_without_a_step_that_tells_it_is_what_it_would_correct(name: str, instead: str, policy: str) -> None:
    named = {estimator.name: estimator for estimator in ALL}
    evidence = played(BANK, (RNG.random(24) < 0.5).astype(float), policy_named(policy), 8, range(3))
    if "+" in policy:
        assert not np.allclose(named[name].moments(evidence).value, named[instead].moments(evidence).value)
        evidence = unrecorded(evidence)
    found, expected = named[name].moments(evidence), named[instead].moments(evidence)
    np.testing.assert_allclose(found.value, expected.value)
    np.testing.assert_allclose(found.standard_error, expected.standard_error)
