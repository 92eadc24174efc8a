"""From a history to what calibration reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import CalibrationSettings, Responses, calibrate, save_bank
from harness.adaptive.calibration.sparse import SparseResponses
from harness.api.banks import calibrate_history, counts_of
from harness.api.calibrating import CalibrationRequest
from harness.records.errors import ConfigError
from harness.store.history import read_history
from harness.store.history_table import Cells, History


def history(*runs: tuple[str, str]) -> History:
    """Runs of (agent, date) on two tasks, the first of which every run passes."""
    cells, unknown = np.arange(2 * len(runs)), np.full(2 * len(runs), np.nan)
    return History(
        run_ids=tuple(f"run-{number}" for number in range(len(runs))),
        agents=tuple(agent for agent, _ in runs),
        dates=tuple(day for _, day in runs),
        tasks=("t1", "t2"),
        cells=Cells(cells // 2, cells % 2, 1 - cells % 2, np.ones_like(cells), unknown, unknown),
    )


def test_repeats_of_an_agent_on_a_day_are_one_row_of_counts() -> None:
    counted = counts_of(history(("a", "2025-01-01"), ("a", "2025-01-01"), ("a", "2025-02-01"), ("b", "")))
    assert counted.agents == ("a", "a", "b")
    counts = counted.responses
    assert isinstance(counts, Responses)
    assert counts.run_ids == ("a 2025-01-01", "a 2025-02-01", "b")
    assert counts.trials.tolist() == [[2, 2], [1, 1], [1, 1]]
    assert counts.passes.tolist() == [[2, 0], [1, 0], [1, 0]]
    assert counts.dates == ("2025-01-01", "2025-02-01", "")


def test_runs_without_repeats_keep_their_names() -> None:
    assert counts_of(history(("a", "2025-01-01"), ("b", "2025-01-01"))).responses.run_ids == ("run-0", "run-1")


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """Two agents at two dates, ten tasks."""
    rows = [
        f"{agent},{day},t{task},{int(task < passes)},{version}"
        for agent, day, passes, version in (("a", "2025-01-01", 3, "v1"), ("b", "2025-03-02", 7, "v2"))
        for task in range(10)
    ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["agent,date,task,outcome,suite_version", *rows]) + "\n")
    return str(path)


def test_a_half_life_weighs_and_a_window_leaves_out(runs: str) -> None:
    weighed = calibrate_history(CalibrationRequest(history=(runs,), half_life_days=30)).provenance
    assert weighed.n_runs == 2
    assert weighed.effective_runs == pytest.approx(1.25)
    recent = calibrate_history(CalibrationRequest(history=(runs,), window_days=30)).provenance
    assert (recent.n_runs, recent.first_date) == (1, "2025-03-02")


def test_a_mostly_empty_history_stays_sparse_and_gives_the_same_bank(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        f"a{run},t{task},{int(rng.random() < 0.5)}" for run in range(40) for task in rng.choice(60, 6, replace=False)
    ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["agent,task,outcome", *rows]) + "\n")
    responses = counts_of(read_history(path)).responses
    assert isinstance(responses, SparseResponses)
    sparse, dense = (calibrate(one, CalibrationSettings(dims=1)).bank for one in (responses, responses.dense()))
    np.testing.assert_allclose(sparse.beta, dense.beta, atol=1e-6)
    assert calibrate_history(CalibrationRequest(history=(str(path),), dims=1)).digest == sparse.digest


def test_what_tasks_cost_on_average_goes_into_the_bank(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("agent,task,outcome,cost_usd\na,t,1,2\nb,t,0,4\na,u,1,\nb,u,0,\na,v,1,1\nb,v,1,\n")
    bank = calibrate_history(CalibrationRequest(history=(str(path),)))
    assert bank.cost_usd is not None
    np.testing.assert_array_equal(bank.cost_usd, [3.0, np.nan, 1.0])
    assert bank.duration_s is None


def test_more_than_one_suite_version_is_a_note(runs: str) -> None:
    bank = calibrate_history(CalibrationRequest(history=(runs,)))
    assert bank.provenance.notes[-1] == "2 suite versions: equal task names may be different tasks"


def test_priors_are_for_the_method_that_does_not_learn_them(runs: str) -> None:
    wide = CalibrationRequest(history=(runs,), method="map", prior={"difficulty_sd": 9.0})
    narrow = CalibrationRequest(history=(runs,), method="map", prior={"difficulty_sd": 0.1})
    assert np.ptp(calibrate_history(wide).beta) > 5 * np.ptp(calibrate_history(narrow).beta)
    with pytest.raises(ConfigError, match=r"learnt from the history.*map"):
        calibrate_history(CalibrationRequest(history=(runs,), prior={"difficulty_sd": 9.0}))
    with pytest.raises(ConfigError, match=r"'sd'.*difficulty_sd"):
        calibrate_history(CalibrationRequest(history=(runs,), method="map", prior={"sd": 9.0}))


def test_a_fit_goes_on_from_the_last_bank(runs: str, tmp_path: Path) -> None:
    first = calibrate_history(CalibrationRequest(history=(runs,)))
    save_bank(first, tmp_path / "bank.npz")
    again = calibrate_history(CalibrationRequest(history=(runs,), start=str(tmp_path / "bank.npz")))
    np.testing.assert_allclose(again.beta, first.beta, atol=0.1)
    assert again.provenance.convergence.iterations < first.provenance.convergence.iterations
