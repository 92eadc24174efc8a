"""The report on a fit: held-out calibration, misfits, residual correlation, what the runs are worth, what is thin."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from harness.adaptive import CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.fit_report import FitReport

ITEMS = tuple(f"{'ab'[index % 2]}/item-{index}" for index in range(60))


def report_of(passes: np.ndarray, items: tuple[str, ...] = ITEMS, **settings: object) -> FitReport:
    history = Responses(tuple(f"r{r}" for r in range(len(passes))), items, passes, np.ones_like(passes))
    report = calibrate(history, CalibrationSettings(**{"dims": 1, **settings})).bank.report  # type: ignore[arg-type]
    assert report is not None
    return report


@cache
def outcomes() -> np.ndarray:
    return np.array(simulate_population(1, 150, ITEMS, d=1).responses().passes)


@cache
def plain() -> FitReport:
    return report_of(outcomes())


def test_a_model_that_is_right_has_nothing_to_report() -> None:
    report = plain()
    assert (report.n_runs, report.n_items) == (150, 60)
    assert report.misfits == ()
    assert report.pairs_found <= 1
    assert report.thin == ()
    assert report.effective_runs > 130
    assert 0.12 < report.held_out_trials / 9000 < 0.18
    assert report.calibration_error is not None
    assert report.calibration_error < 0.05
    assert sum(one.trials for one in report.calibration) == report.held_out_trials
    for one in report.calibration:
        assert one.lower <= one.predicted <= one.upper
        assert abs(one.predicted - one.observed) < 4 * np.sqrt(0.25 / one.trials)


def test_it_is_plain_and_comes_back_equal() -> None:
    for report in (plain(), report_of(outcomes()[:4], report=True)):
        assert FitReport.from_dict(json.loads(json.dumps(report.as_dict(), allow_nan=False))) == report


def test_an_item_that_the_model_cannot_follow_misfits() -> None:
    passes = outcomes().copy()
    # Passed by the worst and failed by the best: a slope that cannot be negative does not explain it, any other does.
    order = np.argsort(passes.sum(axis=1))
    passes[order, 5] = np.arange(150) < 75
    report = report_of(passes, method="map")
    assert [misfit.item for misfit in report.misfits] == ["b/item-5"]
    assert report.misfits_found == 1
    assert report.misfits[0].outfit > 1.1
    assert report.misfits[0].trials == 150
    assert report_of(passes).misfits == ()


def test_items_that_share_more_than_ability_are_named() -> None:
    passes = outcomes().copy()
    passes[:, 8] = passes[:, 9]
    shared = (np.random.default_rng(3).random(150) < 0.5).astype(float)
    for item in range(20, 40, 2):
        copied = np.random.default_rng(item).random(150) < 0.6
        passes[copied, item] = shared[copied]
    report = report_of(passes)
    assert report.pairs[0].items == ("a/item-8", "b/item-9")
    assert report.pairs[0].correlation > 0.9
    assert report.pairs[0].runs == 150
    groups = {group.group: group for group in report.groups}
    assert groups["a"].items == groups["b"].items == 30
    assert groups["a"].correlation > groups["b"].correlation + 0.02


def test_copies_of_a_run_count_once() -> None:
    report = report_of(np.repeat(outcomes()[:30], 5, axis=0))
    assert 20 < report.effective_runs < 45
    assert any("near duplicates" in sentence for sentence in report.thin)


def test_a_thin_history_is_called_thin() -> None:
    report = report_of(outcomes()[:5])
    assert any("5 runs" in sentence for sentence in report.thin)
    holed = outcomes().copy()
    trials = np.ones_like(holed)
    trials[3:, 0] = holed[3:, 0] = 0
    history = Responses(tuple(f"r{r}" for r in range(150)), ITEMS, holed, trials)
    found = calibrate(history, CalibrationSettings(dims=1)).bank.report
    assert found is not None
    assert any("1 of 60 items have fewer than 5 trials" in sentence for sentence in found.thin)


def test_a_wrong_model_shows_on_hidden_cells() -> None:
    """Outcomes that follow no ability at all, but whether run and item are of one parity: Rasch cannot know."""
    rng = np.random.default_rng(0)
    parity = (np.arange(120)[:, None] + np.arange(60)) % 2
    passes = (rng.random((120, 60)) < np.where(parity, 0.9, 0.1)).astype(float)
    rasch, richer = report_of(passes, dims="rasch"), report_of(passes, dims=1)
    assert rasch.groups[0].correlation > 0.5
    assert abs(richer.groups[0].correlation) < 0.1
    assert rasch.held_out_log_likelihood is not None
    assert richer.held_out_log_likelihood is not None
    assert richer.held_out_log_likelihood > rasch.held_out_log_likelihood + 0.3


@pytest.mark.parametrize("method", ["variational", "map"])
def test_no_report_where_none_is_wanted(method: str) -> None:
    history = simulate_population(1, 12, ITEMS, d=1).responses()
    chosen = CalibrationSettings(dims=1, report=False, method=method)  # type: ignore[arg-type]
    assert calibrate(history, chosen).bank.report is None
