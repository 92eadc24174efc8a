"""Replaying a history under policies: the ends are known exactly, and what a bank may have seen is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import (
    AdaptiveError,
    Calibration,
    CalibrationSettings,
    Responses,
    calibrate,
    save_bank,
    simulate_population,
)
from harness.adaptive.bank import prior_bank
from harness.api.banks import calibrate_history
from harness.api.calibrating import CalibrationRequest
from harness.api.studies import StudyRequest, checkpoints, simulate
from harness.records.errors import ConfigError
from harness.store.history import read_history
from tests.adaptive.banks import random_bank

ITEMS = tuple(f"item-{number}" for number in range(24))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve agents, one of them twice; the cost of task n is n cents."""
    responses = simulate_population(3, 12, ITEMS, d=1).responses()
    rows = ["agent,date,task,trial,outcome,cost_usd"]
    for agent, outcomes in zip(responses.run_ids, responses.passes.astype(int).tolist(), strict=True):
        for trial in (1, 2) if agent == "agent-0" else (1,):
            rows += [
                f"{agent},2025-03-01,{item},{trial},{outcome},{int(item[5:]) / 100}"
                for item, outcome in zip(ITEMS, outcomes, strict=True)
            ]
    path = tmp_path_factory.mktemp("history") / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def bank(history: Path) -> Path:
    path = history.parent / "bank.npz"
    save_bank(random_bank(2, n=24, d=1), path)
    return path


def request(history: Path, bank: Path | None = None, **changes: object) -> StudyRequest:
    plain = {"history": (str(history),), "bank": bank and str(bank), "policies": ("random", "d_optimal"), "repeats": 2}
    return StudyRequest.model_validate({**plain, **changes})


def test_every_task_run_is_the_truth_at_the_whole_cost(history: Path, bank: Path) -> None:
    study = simulate(request(history, bank, stop=500))
    assert (study.runs, study.agents, study.items) == (13, 12, 24)
    last = [line for line in study.lines if line.tasks == 24]
    assert [line.policy for line in last] == ["random", "d_optimal"]
    for line in last:
        assert (line.error, line.bias, line.width, line.coverage) == pytest.approx((0, 0, 0, 1), abs=1e-9)
        assert (line.cost_usd, line.cost_share) == pytest.approx((sum(range(24)) / 100, 1.0))
        assert (line.seconds, line.seconds_share) == (None, None)


def test_errors_fall_and_costs_rise_with_tasks(history: Path, bank: Path) -> None:
    lines = [line for line in simulate(request(history, bank, stop=24)).lines if line.policy == "random"]
    assert [line.tasks for line in lines] == [10, 24]
    assert lines[0].error > lines[1].error
    assert lines[0].cost_share is not None
    assert lines[0].cost_share == pytest.approx(10 / 24, abs=0.1)
    assert lines[0].error_interval is not None
    assert lines[0].error_interval[0] < lines[0].error < lines[0].error_interval[1]


def test_without_a_bank_nobody_is_in_the_bank_that_tries_him(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[frozenset[str]] = []

    def spied(responses: Responses, settings: CalibrationSettings) -> Calibration:
        seen.append(frozenset(name.split()[0] for name in responses.run_ids))
        return calibrate(responses, settings)

    monkeypatch.setattr("harness.api.banks.calibrate", spied)
    study = simulate(request(history, folds=4, stop=10, repeats=1))
    everyone = frozenset(read_history(history).agents)
    left_out = [everyone - rest for rest in seen]
    assert sorted(agent for part in left_out for agent in part) == sorted(everyone)
    assert "calibrated 4 times" in study.notes[-1]


def test_a_bank_that_has_seen_the_history_is_said_to_flatter_itself(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "bank.npz"
    save_bank(calibrate_history(CalibrationRequest(history=(str(history),), dims="rasch")), path)
    assert "on this very history" in simulate(request(history, path, stop=5)).notes[0]
    part = tmp_path / "part.csv"
    part.write_text("\n".join(history.read_text().splitlines()[: 1 + 24 * 5]) + "\n")
    assert "5 of 5 runs are no later than" in " ".join(simulate(request(part, path, stop=5)).notes)


def test_policies_may_go_by_what_tasks_cost(history: Path) -> None:
    study = simulate(request(history, folds=2, policies=("pass_rate", "cost_aware"), stop=10, repeats=1))
    dear, cheap = (line.cost_usd for line in study.lines)
    assert dear is not None
    assert cheap is not None
    assert cheap < 0.75 * dear


def test_auto_is_back_tested_without_those_it_is_tried_on(history: Path, bank: Path) -> None:
    study = simulate(request(history, folds=2, policies=("auto", "random"), stop=10, repeats=1))
    assert [line.policy for line in study.lines] == ["auto", "random"]
    assert study.notes[-1].startswith("auto: ")
    assert "of 2" in study.notes[-1]
    plain = simulate(request(history, bank, policies=("auto",), stop=10, repeats=1))
    assert plain.notes[-1] == "auto: no bank has a back-test, so it is d_optimal"


def test_runs_without_a_grade_are_left_out_and_said(history: Path, bank: Path, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(history.read_text() + "nobody,2025-03-01,item-1,1,ungraded,\n")
    study = simulate(request(path, bank, stop=5))
    assert (study.runs, study.notes[0]) == (13, "1 runs without any grade left out")


def test_an_unknown_cost_is_no_zero(history: Path, bank: Path, tmp_path: Path) -> None:
    first = history.read_text().splitlines()
    path = tmp_path / "runs.csv"
    path.write_text("\n".join([*first[:24], first[24].rpartition(",")[0] + ","]) + "\n")
    assert {line.cost_usd for line in simulate(request(path, bank, stop=24)).lines} == {None}


@pytest.mark.parametrize("change", [{"policies": ("best",)}, {"estimator": "best"}])
def test_what_there_is_not_is_refused_with_what_there_is(history: Path, bank: Path, change: dict[str, object]) -> None:
    with pytest.raises(AdaptiveError, match=r"'best'.*random|'best'.*p_irt"):
        simulate(request(history, bank, **change))


def test_one_agent_cannot_be_held_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("agent,task,outcome\na,t,1\na,u,0\n")
    with pytest.raises(ConfigError, match="--bank"):
        simulate(request(path))


def test_a_bank_of_another_suite_is_refused_and_one_of_a_part_of_it_said(history: Path, tmp_path: Path) -> None:
    path = tmp_path / "bank.npz"
    save_bank(prior_bank(ITEMS[:20]), path)
    assert "4 of 24 tasks are not in the bank" in simulate(request(history, path, stop=5)).notes[0]
    save_bank(prior_bank(["another", "suite"]), path)
    with pytest.raises(ConfigError, match="no task of these runs is in the bank"):
        simulate(request(history, path, stop=5))


def test_checkpoints_rise_to_the_stop() -> None:
    assert checkpoints(7) == (7,)
    assert checkpoints(60) == (10, 25, 50, 60)
    assert np.all(np.diff(checkpoints(5000)) > 0)
