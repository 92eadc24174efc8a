"""Time and memory of the engine, each in a process of its own so that peaks are its own; CPU time, one BLAS thread."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.adaptive import results
from harness.adaptive import (
    AdaptiveEngine,
    Bank,
    CalibrationSettings,
    Choice,
    EngineSettings,
    calibrate,
    policy_named,
    prior_bank,
    simulate_population,
)
from harness.adaptive.arrays import sigmoid
from harness.adaptive.calibration.sparse import SparseResponses

OUTCOMES, IN_FLIGHT, REPEATS, DIMS = 100, 8, 200, 5


@dataclass(frozen=True)
class Task:
    """A measurement with its bar: `limit` in `unit`."""

    name: str
    about: str
    limit: float
    unit: str


TASKS = (
    Task("calibrate_287x519", "calibrate 287 × 519, d = 3", 1.0, "s CPU"),
    Task("calibrate_5000x2000", "calibrate 5,000 × 2,000, d = 3", 30.0, "s CPU"),
    Task("next_519", "choose the next of 519, d = 5", 0.5, "ms"),
    Task("next_10000", "choose the next of 10,000, d = 5", 2.0, "ms"),
    Task("next_100000", "choose the next of 100,000, d = 5", 20.0, "ms"),
    Task("sparse_20000x5000", "calibrate 20,000 × 5,000, 2 % filled, d = 3: peak RSS", 2.0, "GB"),
)
BARRED_POLICIES = ("d_optimal", "pass_rate")


def measure(name: str) -> dict[str, Any]:
    """One task, in this process: {"value": the worst of what the bar is on, and what else there is to say}."""
    kind, _, size = name.partition("_")
    if kind == "next":
        return time_choices(int(size), DIMS)
    n_runs, n_items = (int(number) for number in size.split("x"))
    return _sparse(n_runs, n_items) if kind == "sparse" else _calibrate(n_runs, n_items)


def _calibrate(n_runs: int, n_items: int) -> dict[str, Any]:
    history = simulate_population(1, n_runs, [f"item-{index}" for index in range(n_items)], 3).responses()
    repeats = 3 if n_runs < 1000 else 1
    spent, bank = [], None
    for _ in range(repeats):
        start = time.process_time()
        bank = calibrate(history, CalibrationSettings(dims=3)).bank
        spent.append(time.process_time() - start)
    assert bank is not None
    convergence = bank.provenance.convergence
    return {"value": min(spent), "converged": convergence.converged, "iterations": convergence.iterations}


def _sparse(n_runs: int, n_items: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    runs, items, passes = [], [], []
    theta, alpha = rng.normal(size=(n_runs, 3)), np.abs(rng.normal(0.8, 0.4, (n_items, 3)))
    beta = rng.normal(0.0, 1.4, n_items)
    per_run = n_items // 50
    for run in range(n_runs):
        chosen = rng.choice(n_items, per_run, replace=False)
        runs.append(np.full(per_run, run))
        items.append(chosen)
        passes.append(rng.random(per_run) < sigmoid(alpha[chosen] @ theta[run] - beta[chosen]))
    verdicts = np.concatenate(passes).astype(np.float64)
    history = SparseResponses(
        tuple(f"run-{run}" for run in range(n_runs)),
        tuple(f"item-{item}" for item in range(n_items)),
        np.concatenate(runs),
        np.concatenate(items),
        verdicts,
        np.ones(len(verdicts)),
    )
    start = time.process_time()
    bank = calibrate(history, CalibrationSettings(dims=3)).bank
    spent = time.process_time() - start
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0**2
    return {"value": peak_gb, "cpu_s": spent, "converged": bank.provenance.convergence.converged}


def time_choices(n_items: int, d: int) -> dict[str, Any]:
    """Milliseconds of a choice after 100 outcomes with 8 in flight, and of taking in an outcome; medians."""
    found: dict[str, Any] = {}
    for policy in BARRED_POLICIES:
        engine, pending = _mid_run(n_items, d, policy)
        item = engine.bank.index[pending[0]]
        times = _times(partial(engine.next, pending), REPEATS)
        observing = _times(partial(engine.state.observe, item, 1), REPEATS // 4)
        found[policy] = round(statistics.median(times) * 1e3, 4)
        found[f"{policy}, 99 %"] = round(statistics.quantiles(times, n=100)[-1] * 1e3, 4)
        found[f"{policy}, take in an outcome"] = round(statistics.median(observing) * 1e3, 4)
    return {"value": max(found[policy] for policy in BARRED_POLICIES), **found}


def _mid_run(n_items: int, d: int, policy: str) -> tuple[AdaptiveEngine, list[str]]:
    bank = _made_up(n_items, d)
    rng = np.random.default_rng(2)
    engine = AdaptiveEngine(bank, EngineSettings(policy=policy_named(policy), stops=(), seed=1))
    pending: list[str] = []
    for turn in range(OUTCOMES + IN_FLIGHT):
        step = engine.next(pending)
        assert isinstance(step, Choice)
        if turn < OUTCOMES:
            engine.observe(step.item, bool(rng.random() < 0.5))
        else:
            pending.append(step.item)
    return engine, pending


def _made_up(n_items: int, d: int) -> Bank:
    """A bank of the right size with item covariances: how it was come by does not matter to a choice."""
    rng = np.random.default_rng(3)
    return replace(
        prior_bank([f"item-{index}" for index in range(n_items)]),
        alpha=rng.normal(0.6, 0.5, (n_items, d)),
        beta=rng.normal(0.0, 1.4, n_items),
        prior_mean=np.zeros(d),
        prior_covariance=np.eye(d),
        calibrated=np.ones(n_items, dtype=np.bool_),
        item_covariance=np.tile(0.02 * np.eye(d + 1), (n_items, 1, 1)),
    )


def _times(action: Callable[[], object], repeats: int) -> list[float]:
    """CPU seconds of each call; the clock is this thread's own, so that what else the machine does is not counted."""
    spent = []
    for _ in range(repeats):
        start = time.thread_time()
        action()
        spent.append(time.thread_time() - start)
    return spent


def main(arguments: Sequence[str]) -> int:
    """Measure all, or one in this process with --only; returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.adaptive speed", description=__doc__)
    parser.add_argument("--only", choices=[task.name for task in TASKS], help="measure one and print JSON")
    chosen = parser.parse_args(arguments)
    if chosen.only:
        print(json.dumps(measure(chosen.only)))
        return 0
    rows = []
    for task in TASKS:
        command = [sys.executable, "-m", "benchmarks.adaptive", "speed", "--only", task.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        rows.append({"name": task.name, "about": task.about, "limit": task.limit, "unit": task.unit, **found})
        verdict = "met" if found["value"] <= task.limit else "MISSED"
        print(
            f"{task.about:<56} {found['value']:>9.3f} {task.unit:<6} (bar {task.limit:g}) {verdict}  {found}",
            flush=True,
        )
    results.save("speed", {"about": "one BLAS thread", "rows": rows})
    return int(any(row["value"] > row["limit"] for row in rows))
