"""What is odd about a run is told before it begins, and kept with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.adaptive.bank import prior_bank
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.responses import Responses
from harness.api.preflight import adaptive_notes, request_notes
from harness.api.request import AdaptiveRequest, RunRequest
from harness.api.wiring import find_solver
from harness.billing.prices import fixed_prices
from harness.records.suite import Suite
from harness.records.task import Limits
from harness.records.vocabulary import Network
from tests.runner.scenes import make_task

PRICES = fixed_prices(
    {
        "date": "2026-01-01",
        "models": {
            "whole": {"input": 1.0, "output": 1.0, "cache_read": 0.1, "cache_write": 1.0},
            "partly": {"input": 1.0, "output": 1.0, "cache_write": 1.0},
        },
    }
)


def told(solver: str, network: Network = Network.NONE, **request: Any) -> tuple[str, ...]:
    options = {"command": "x"} if solver == "command" else {}
    suite = Suite(name="s", source="s", tasks=(make_task(limits=Limits(network=network)),))
    return request_notes(RunRequest(suite="s", **request), find_solver(solver, options), suite, PRICES)


def test_nothing_odd_is_nothing_told() -> None:
    assert told("agent", model="whole") == ()
    assert told("noop") == ()
    assert told("command", Network.INTERNET) == ()


def test_a_model_that_a_solver_does_not_use_is_told() -> None:
    (note,) = told("noop", model="whole")
    assert "model 'whole' is not used: solver 'noop' does not declare `needs_model = True`" in note


def test_prices_that_are_missing_or_assumed_are_told() -> None:
    (note,) = told("agent", model="partly")
    assert note.endswith("leaves out prices of 'partly'; from above, cache_read counts 1 × the price of input")
    (note,) = told("agent", model="nobodys")
    assert "fixed 2026-01-01 has no price for model 'nobodys'" in note
    (note,) = told("agent", model="nobodys", allow_unknown_price=True)
    assert "cost budgets are not kept" in note


def test_budgets_that_cannot_hold_a_solver_are_told() -> None:
    (note,) = told("command", Network.INTERNET, budget={"cost_usd": 1.0})
    assert "token and cost budgets cannot hold it" in note
    assert told("command", Network.NONE, budget={"cost_usd": 1.0}) == ()
    assert told("command", Network.INTERNET, budget={"steps": 3}) == ()


HISTORY = RunRequest(suite="s", adaptive=AdaptiveRequest(history="runs.csv"))
TASKS = ("a", "b", "c", "d")


def test_far_more_trials_than_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.api.preflight.os.cpu_count", lambda: 2)
    assert told("noop", concurrency=16) == ()
    (note,) = told("noop", concurrency=17)
    assert "17 trials at once on 2 core(s)" in note


def calibrated(runs: int, tasks: tuple[str, ...]) -> Any:
    rng = np.random.default_rng(0)
    passes = rng.integers(0, 2, (runs, len(tasks))).astype(float)
    responses = Responses(tuple(f"r{n}" for n in range(runs)), tasks, passes, np.ones_like(passes), ("",) * runs)
    return calibrate(responses, CalibrationSettings(dims=1)).bank


@pytest.mark.parametrize(
    ("runs", "known", "words"),
    [
        (20, ("x", "y", "z"), ["shares no task with this run"]),
        (20, ("a", "b", "x"), ["does not know 2 of 4 tasks"]),
        (1, TASKS, ["holds one run"]),
        (1, ("x",), ["shares no task", "holds one run"]),
        (20, TASKS, []),
    ],
)
def test_a_history_that_tells_little_about_the_tasks_is_told(
    runs: int, known: tuple[str, ...], words: list[str]
) -> None:
    notes = adaptive_notes(HISTORY, calibrated(runs, known).align(TASKS))
    assert len(notes) == len(words)
    for note, word in zip(notes, words, strict=True):
        assert word in note
        assert note.startswith("history runs.csv ")


def test_without_a_history_there_is_nothing_to_tell() -> None:
    assert adaptive_notes(RunRequest(suite="s", adaptive=AdaptiveRequest()), prior_bank(TASKS)) == ()
    assert adaptive_notes(RunRequest(suite="s"), prior_bank(TASKS)) == ()
