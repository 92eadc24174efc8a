"""The instruments of the adaptive study: exact baselines, bootstrap, fixed designs, nesting, recovery."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.adaptive.designs import Clusters, evidence_on, expected_random_error, random_orders
from benchmarks.adaptive.experiments import EPSILONS, caching
from benchmarks.adaptive.folds import evenly, simulated_fold
from benchmarks.adaptive.matrix_data import Matrix, expanding, leave_out
from benchmarks.adaptive.methods import Workshop, arm, evaluate, floor, oracle, random_sampling, strata
from benchmarks.adaptive.peers import recovery
from benchmarks.adaptive.scores import Bootstrap, Scores, summary
from harness.adaptive import PassRate, PIrt, Responses, policy_named
from harness.adaptive.estimators import SampleMean
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.populations.lineage import Shape, simulate_lineage

SMALL = Shape(n_runs=60, n_items=40, days=20, d=2)


def responses(outcomes: list[list[int]], dates: tuple[str, ...] = ()) -> Responses:
    passes = np.array(outcomes, dtype=float)
    runs = tuple(f"r{index}" for index in range(len(passes)))
    items = tuple(f"i{index}" for index in range(passes.shape[1]))
    return Responses(runs, items, passes, np.ones(passes.shape), dates)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_random_baseline_is_the_mean_over_all_subsets(k: int) -> None:
    tested = responses([[1, 1, 0, 0, 1], [0, 0, 0, 0, 1]])
    for run, row in enumerate(tested.passes):
        by_hand = np.mean([abs(np.mean(some) - row.mean()) for some in combinations(row, k)])
        assert expected_random_error(tested, [k])[run, 0] == pytest.approx(by_hand)


def test_a_fixed_design_gives_what_a_step_by_step_run_gives() -> None:
    fold = simulated_fold(simulate_lineage(3, SMALL), range(30), range(30, 36))
    bank = Workshop(fold).map
    orders = random_orders(fold.tested, fold.seeds)
    study = Study(policy_named("random"), (PIrt(), SampleMean()), (7, 20), fold.seeds)
    stepwise = run_study(bank, fold.tested.passes, fold.tested.trials, study)
    assert stepwise.items.tolist() == orders[:, :20].tolist()
    for at, k in enumerate((7, 20)):
        seen = evidence_on(bank, fold.tested, orders[:, :k], random=True)
        for estimator in (PIrt(), SampleMean()):
            moments, theirs = estimator.moments(seen), stepwise.moments[estimator.name]
            np.testing.assert_allclose(moments.value, theirs.value[:, at], atol=1e-7)
            np.testing.assert_allclose(moments.standard_error, theirs.standard_error[:, at], atol=1e-7)


def test_items_without_an_outcome_are_drawn_last() -> None:
    whole = responses([[1, 0, 1, 0]])
    trials = np.array([[1.0, 0.0, 1.0, 0.0]])
    holed = Responses(whole.run_ids, whole.item_ids, whole.passes * trials, trials)
    assert {int(item) for item in random_orders(holed, [5])[0, :2]} == {0, 2}


def test_clusters_weigh_their_share_and_choose_the_nearest_member() -> None:
    features = np.array([[0.0], [0.1], [0.3], [5.0], [5.2]])
    clusters = Clusters.of(features, 2)
    chosen = dict(zip(clusters.items.tolist(), clusters.weights.tolist(), strict=True))
    assert chosen == {1: pytest.approx(0.6), next(item for item in chosen if item > 2): pytest.approx(0.4)}


def test_the_bootstrap_draws_units_whole() -> None:
    values = np.array([1.0, 1.0, 3.0, 3.0])
    whole = Bootstrap(["a", "a", "b", "b"]).mean(values)
    assert (whole.value, whole.low, whole.high) == (2.0, 1.0, 3.0)  # two units: all a, all b, or one of each
    assert Bootstrap(["a", "b", "c", "d"]).ratio(values, 2 * values).as_list() == [0.5, 0.5, 0.5]


def test_a_summary_has_the_right_figures() -> None:
    truth = np.array([0.2, 0.4, 0.6, 0.8])
    value = (truth + np.array([0.1, -0.1, 0.1, 0.1]))[:, None]
    reach = np.array([0.2, 0.05, 0.2, 0.2])[:, None]
    scores = Scores(value, value - reach, value + reach, np.abs(value - truth[:, None]), truth)
    half = Scores(value, value - reach, value + reach, scores.error / 2, truth)
    row = summary({"one": scores, "half": half}, [7], ["a", "b", "c", "d"], ["one"])[1]
    assert row["ratio"] == {"one": [0.5, 0.5, 0.5]}
    assert row["bias_pp"] == pytest.approx(5.0)
    assert row["coverage"][0] == 0.75  # type: ignore[index]
    assert row["width_pp"] == pytest.approx(32.5)
    assert row["spearman"] == pytest.approx(0.9487)  # .3 and .3 tie


def test_methods_rank_as_they_must_on_a_population_that_fits() -> None:
    fold = simulated_fold(simulate_lineage(1, SMALL), range(40), evenly(40, 60, 20))
    found = evaluate(fold, (random_sampling, strata, oracle, floor, arm("map", PassRate(), PIrt())), (10, 20))
    error = {name: scores.error.mean() for name, scores in found.items()}
    assert error["floor"] < error["oracle"] < error["random"]
    assert error["map/pass_rate/p_irt"] < error["random"]
    assert {"strata", "strata gp-IRT"} <= set(error)


def test_no_run_of_a_held_out_unit_is_in_the_history() -> None:
    matrix = Matrix(responses([[1, 0]] * 9), tuple("aabbccdde"))
    for count, folds in ((5, list(leave_out(matrix))), (2, list(leave_out(matrix, 2)))):
        assert len(folds) == count
        assert sorted(run for fold in folds for run in fold.tested.run_ids) == sorted(matrix.responses.run_ids)
        for fold in folds:
            assert not set(fold.agents) & set(fold.units)


def test_an_expanding_window_never_looks_ahead() -> None:
    dates = tuple(f"2026-01-0{1 + index // 3}" for index in range(12))
    matrix = Matrix(responses([[1, 0]] * 12, dates), tuple(f"a{index}" for index in range(12)))
    assert list(expanding(matrix, 10)) == []
    folds = list(expanding(matrix, 5))
    assert [len(fold.history.run_ids) for fold in folds] == [6, 9]
    for fold in folds:
        assert max(fold.history.dates) < min(fold.tested.dates)


def test_caching_executes_less_the_more_it_may_reuse() -> None:
    fraction, value, truth = caching(simulate_lineage(2, SMALL), 30, 10)
    assert fraction.shape == value.shape == (10, len(EPSILONS))
    assert (np.diff(fraction, axis=1) <= 1e-12).all()
    error = np.abs(value - truth[:, None]).mean(axis=0)
    assert error[-1] > error[0]


def test_recovery_forgives_an_affine_change_of_axes_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(size=(50, 4))
    turn, shift = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=3)
    moved = np.column_stack([true[:, :3] @ turn, true[:, 3] - true[:, :3] @ shift])
    assert max(recovery(moved, true)) < 1e-9
    noisy = moved + np.column_stack([np.zeros((50, 3)), rng.normal(0, 0.5, 50)])
    assert 0.3 < recovery(noisy, true)[1] < 0.6
