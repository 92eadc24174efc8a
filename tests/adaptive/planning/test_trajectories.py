"""Many agents at once: the choices, estimates and draws of the engine, agent by agent."""

from __future__ import annotations

import numpy as np
import pytest

from harness.adaptive import AdaptiveEngine, Choice, EngineSettings, PIrt, PosteriorPredictive, TasksStop
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import estimate_of
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.policies import Policy, policy_named

from ..banks import random_bank

BANK = random_bank(5, n=40, d=2)
OUTCOMES = (np.random.default_rng(3).random((6, 40)) < BANK.probability(np.zeros(2))).astype(float)


@pytest.mark.parametrize("name", ["d_optimal", "pass_rate", "random", "pass_rate+0.5"])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_every_agent_makes_the_choices_of_the_engine(name: str, in_flight: int) -> None:
    policy: Policy = policy_named(name)
    seeds = tuple(range(10, 16))
    study = Study(policy, (PIrt(), PosteriorPredictive()), (8, 20), seeds, in_flight)
    found = run_study(BANK, OUTCOMES, np.ones(OUTCOMES.shape), study)
    for agent, seed in enumerate(seeds):
        engine = AdaptiveEngine(BANK, EngineSettings(policy=policy, seed=seed, stops=(TasksStop(20),)))
        waiting: list[str] = []
        order = []
        while True:
            step = engine.next(tuple(waiting))
            if isinstance(step, Choice):
                waiting.append(step.item)
                order.append(step.index)
                if len(waiting) < in_flight:
                    continue
            elif not waiting:
                break
            item = waiting.pop(0)
            engine.observe(item, bool(OUTCOMES[agent, BANK.index[item]]))
            if len(engine.state.items) == 8:
                middle = estimate_of(PosteriorPredictive(), engine.state.evidence)
        assert found.items[agent].tolist() == order
        np.testing.assert_allclose(found.theta[agent, 1], engine.state.theta, atol=1e-6)
        moments = found.moments["posterior_predictive"]
        assert moments.value[agent, 0] == pytest.approx(middle.value, abs=1e-7)
        assert moments.standard_error[agent, 0] == pytest.approx(middle.standard_error, abs=1e-7)
        assert found.truth[agent] == pytest.approx(OUTCOMES[agent].mean())


def test_cells_without_trials_are_never_chosen_and_leave_the_population() -> None:
    trials = np.ones(OUTCOMES.shape)
    trials[2, 5:] = 0
    trials[3, ::2] = 0
    study = Study(policy_named("pass_rate"), (PIrt(),), (4, 12))
    found = run_study(BANK, OUTCOMES * trials, trials, study)
    assert set(found.items[2][:5].tolist()) == set(range(5))
    assert (found.items[2][5:] == -1).all()
    assert (found.items[3] % 2 == 1).all()
    assert found.truth[2] == pytest.approx(OUTCOMES[2, :5].mean())
    assert found.moments["p_irt"].value[2, 1] == pytest.approx(found.truth[2])
    assert found.moments["p_irt"].standard_error[2, 1] == 0.0


def test_a_study_that_makes_no_sense_is_refused() -> None:
    for study in (
        Study(policy_named("random"), (PIrt(),), ()),
        Study(policy_named("random"), (PIrt(),), (8, 8)),
        Study(policy_named("random"), (PIrt(),), (8,), seeds=(1, 2)),
        Study(policy_named("random"), (PIrt(),), (8,), in_flight=0),
    ):
        with pytest.raises(EngineError, match="rising checkpoints"):
            run_study(BANK, OUTCOMES, np.ones(OUTCOMES.shape), study)
