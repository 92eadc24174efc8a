"""Is it worth it: error against random sampling, and coverage, on simulated and on real outcomes."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.adaptive import (
    AdaptiveEngine,
    Bank,
    CalibrationSettings,
    Choice,
    EngineSettings,
    Estimate,
    Responses,
    TasksStop,
    calibrate,
    policy_named,
    simulate_population,
)

BUDGETS = (100, 200)
DATA = Path(os.environ.get("ASSAY_DATA", Path(__file__).resolve().parents[2] / ".." / "shared" / "data"))


@dataclass(frozen=True)
class Result:
    """Absolute errors and coverage (A, K) of A agents at K budgets, and the error of random sampling (A, K)."""

    error: np.ndarray
    covered: np.ndarray
    random_error: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        return np.asarray(self.error.mean(axis=0) / self.random_error.mean(axis=0))


def estimates(bank: Bank, outcomes: np.ndarray, policy: str, budgets: tuple[int, ...]) -> list[Estimate]:
    stops = (TasksStop(max(budgets)),)
    engine = AdaptiveEngine(bank, EngineSettings(policy=policy_named(policy), stops=stops, seed=1))
    found = []
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, bool(outcomes[step.index]))
        if len(engine.state.items) in budgets:
            found.append(engine.estimate())
    return found


def random_error(outcomes: np.ndarray, budgets: tuple[int, ...], seeds: int = 40) -> list[float]:
    """Mean absolute error of the mean of k items drawn without replacement."""
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(outcomes) for _ in range(seeds)])
    return [float(np.abs(orders[:, :k].mean(axis=1) - outcomes.mean()).mean()) for k in budgets]


def evaluate(pairs: list[tuple[Bank, np.ndarray]], policy: str, budgets: tuple[int, ...] = BUDGETS) -> Result:
    rows = [(estimates(bank, outcomes, policy, budgets), outcomes) for bank, outcomes in pairs]
    return Result(
        np.array([[abs(e.value - y.mean()) for e in found] for found, y in rows]),
        np.array([[e.lower <= y.mean() <= e.upper for e in found] for found, y in rows]),
        np.array([random_error(y, budgets) for _, y in rows]),
    )


@cache
def simulated() -> Result:
    """Six populations: a history of 300 runs and 30 new agents each, 519 items, three abilities, D-optimal choice.

    Several, because what one calibration got wrong is wrong for all its agents alike.
    """
    items = [f"item-{i}" for i in range(519)]
    pairs = []
    for seed in range(1, 7):
        bank = calibrate(simulate_population(seed, 300, items).responses(), CalibrationSettings(dims=3)).bank
        new = simulate_population(seed, 30, items, prefix="new")
        pairs += [(bank, new.draw(agent)) for agent in range(30)]
    return evaluate(pairs, "d_optimal")


def test_simulated_error_is_well_under_random() -> None:
    ratio = simulated().ratio
    assert (ratio <= 0.70).all(), ratio


def test_95_percent_intervals_cover_simulated_agents() -> None:
    """CASES S13: at a 200-task stop and before it, at least nominal − 3 %."""
    covered = simulated().covered.mean(axis=0)
    assert (covered >= 0.92).all(), covered


def bash_only() -> Responses:
    """SWE-bench Verified, bash only: 19 models × 500 tasks."""
    path = DATA / "matrices" / "swebench_verified_bash_only.csv.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} under the data folder; set ASSAY_DATA to it")
    with gzip.open(path, "rt", newline="", encoding="utf-8") as stream:
        cells = [
            ("/".join((row["agent"], row["date"], row["trial"])), row["task"], row["outcome"] == "1")
            for row in csv.DictReader(stream)
        ]
    return Responses.from_cells(cells)


def test_leave_one_model_out_on_swe_bench_beats_random() -> None:
    """Every third model by pass rate, calibrated on the other 18; d by held-out likelihood inside the fold."""
    matrix = bash_only()
    assert matrix.passes.shape == (19, 500)
    assert (matrix.trials == 1).all()
    pairs = []
    for left_out in np.argsort(matrix.pass_rates)[::3]:
        others = np.delete(np.arange(19), left_out)
        history = Responses(
            tuple(matrix.run_ids[r] for r in others),
            matrix.item_ids,
            matrix.passes[others],
            matrix.trials[others],
        )
        pairs.append((calibrate(history).bank, matrix.passes[left_out]))
    result = evaluate(pairs, "d_optimal", (100,))
    assert result.ratio[0] <= 0.80, result.ratio
    assert result.covered.mean() >= 0.70
