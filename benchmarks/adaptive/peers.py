"""Other packages in the same run: calibration time and recovery, latency of a choice, accuracy on 40 runs."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adaptive import results
from benchmarks.adaptive.designs import evidence_on
from benchmarks.adaptive.folds import Fold, evenly, simulated_fold
from benchmarks.adaptive.methods import arm, evaluate, floor, paper, random_sampling, rasch, strata
from benchmarks.adaptive.peer_worker import WARM_UP
from benchmarks.adaptive.scores import Scores, bounds_of, summary
from benchmarks.adaptive.speed import BARRED_POLICIES
from harness.adaptive import (
    AdaptiveEngine,
    Bank,
    CalibrationSettings,
    Choice,
    EngineSettings,
    PassRate,
    PIrt,
    PosteriorPredictive,
    calibrate,
    policy_named,
    prior_bank,
    simulate_population,
)
from harness.adaptive.arrays import FloatArray
from harness.adaptive.populations.lineage import simulate_lineage
from harness.adaptive.responses import Responses

WORKER = Path(__file__).with_name("peer_worker.py")
LIMIT_S = 400
SIZES: tuple[tuple[int, int, int], ...] = ((287, 519, 1), (287, 519, 3))
LARGE: tuple[tuple[int, int, int], ...] = ((5000, 2000, 1), (5000, 2000, 3))
CALIBRATORS = ("mirt", "girth", "py-irt")
ADAPTIVE = (("mirt", 1), ("mirt", 3), ("catsim", 1), ("adaptivetesting", 1))
LATENCY_STEPS, OUR_DIMS = 130, (1, 3, 5)
RUNS, BUDGETS = 40, (50, 100, 200)
LEAST_OF_EACH = 3  # outcomes of both kinds: an item without them has no finite estimate in some packages

FEATURES = """\
| | Assay | mirt 1.2.0 | catsim 0.21 | adaptivetesting 1.1.4 | girth 0.8.0 | py-irt 0.7.1 | tinyBenchmarks |
| --- | --- | --- | --- | --- | --- | --- | --- |
| calibrates | Rasch, d-dim 2PL | many models | no | no | 1–3PL, graded | 1–4PL, d-dim | d-dim 2PL by py-irt |
| adaptive choice | yes | yes | yes | yes | no | no | no: fixed anchors |
| d > 1 in choice | yes | yes | no | no | – | – | – |
| aims at the pass rate | yes | no | no | no | – | – | estimator only |
| estimates the whole suite | yes, with interval | no | no | no | no | no | yes, no interval |
| item uncertainty used | yes | no | no | no | no | no | no |
| items in flight | yes | no | no | no | – | – | – |
| random share with known probabilities | yes | no | no | no | – | – | – |
| stops at cost, time, decision | yes | no | no | no | – | – | – |
| back-test of policy and model | yes | no | no | no | – | – | no |
"""


@dataclass(frozen=True)
class Peers:
    """The interpreter that has the other packages, and a folder for what goes to it and comes back."""

    python: str
    folder: Path

    def run(self, job: str, package: str, given: Mapping[str, Any]) -> dict[str, Any] | str:
        """What the worker gave, or one line on why it gave nothing."""
        source, target = self.folder / "in.npz", self.folder / "out.npz"
        target.unlink(missing_ok=True)
        np.savez(source, **given)
        command = [self.python, str(WORKER), job, package, str(source), str(target)]

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))

        one = {**os.environ, "RAYON_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited, env=one)
        if done.returncode < 0:
            return f"not finished in {LIMIT_S} s of CPU"
        if done.returncode or not target.exists():
            lines = done.stderr.strip().splitlines() or ["no message"]
            said = [line for line in lines if "Error: " in line]
            return f"fails: {(said or lines)[-1][:120]}"
        with np.load(target) as found:
            return dict(found)


def calibration_rows(peers: Peers, sizes: Sequence[tuple[int, int, int]]) -> list[dict[str, Any]]:
    """Time and recovery of every package at every size, ours included."""
    rows = []
    for n_runs, n_items, d in sizes:
        population = simulate_population(1, n_runs, [f"item-{i}" for i in range(n_items)], d)
        history = population.responses()
        true = np.column_stack([population.alpha, population.beta])
        usable = _usable(history)

        def row(
            package: str,
            alpha: FloatArray,
            beta: FloatArray,
            cpu_s: float,
            shape: str = f"{n_runs}×{n_items} d={d}",
            true: FloatArray = true,
            usable: np.ndarray = usable,
        ) -> dict[str, Any]:
            slope, intercept = recovery(np.column_stack([alpha, beta])[usable], true[usable])
            return {
                "shape": shape,
                "package": package,
                "cpu_s": cpu_s,
                "slope_rmse": slope,
                "intercept_rmse": intercept,
            }

        for method in ("variational", "map"):
            start = time.process_time()
            bank = calibrate(history, CalibrationSettings(dims=d, method=method, average=False)).bank
            rows.append(row(f"Assay, {method}", bank.alpha, bank.beta, time.process_time() - start))
        for package in CALIBRATORS:
            found = peers.run("calibrate", package, {"outcomes": history.passes, "d": d})
            if isinstance(found, str):
                least = {"cpu_s_at_least": LIMIT_S} if found.startswith("not finished") else {}
                rows.append({"shape": f"{n_runs}×{n_items} d={d}", "package": package, "said": found, **least})
            else:
                rows.append(row(package, found["alpha"], found["beta"], float(found["cpu_s"])))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def recovery(found: FloatArray, true: FloatArray) -> tuple[float, float]:
    """RMSE of slopes and of intercepts (N, d+1; β last) after the best affine change of θ, which no data can fix.

    θ = Lθ' + c gives α' = Lᵀα and β' = β − α·c: both maps are least squares over the items, α onto α and then β.
    """
    slopes, _, _, _ = np.linalg.lstsq(found[:, :-1], true[:, :-1], rcond=None)
    aligned = found[:, :-1] @ slopes
    shift, _, _, _ = np.linalg.lstsq(found[:, :-1], true[:, -1] - found[:, -1], rcond=None)
    intercept = found[:, -1] + found[:, :-1] @ shift
    slope_error = float(np.sqrt(np.mean((aligned - true[:, :-1]) ** 2)))
    return slope_error, float(np.sqrt(np.mean((intercept - true[:, -1]) ** 2)))


def _usable(history: Responses) -> np.ndarray:
    passed = history.passes.sum(axis=0)
    return np.flatnonzero((passed >= LEAST_OF_EACH) & (history.trials.sum(axis=0) - passed >= LEAST_OF_EACH))


def latency_rows(peers: Peers) -> list[dict[str, Any]]:
    """Milliseconds of CPU of one step (take in an outcome, choose the next) on the same items, ours as theirs."""
    rows: list[dict[str, Any]] = []

    def add(package: str, n_items: int, ms: float | str) -> None:
        said = {"said": ms} if isinstance(ms, str) else {"ms": round(ms, 4)}
        rows.append({"items": n_items, "package": package, **said})
        print(rows[-1], file=sys.stderr, flush=True)

    for n_items in (519, 10_000):
        rng = np.random.default_rng(1)
        outcomes = (rng.random((1, n_items)) < 0.6).astype(float)
        items = {d: (np.abs(rng.normal(0.9, 0.3, (n_items, d))), rng.normal(0, 1.4, n_items)) for d in OUR_DIMS}
        for d, (alpha, beta) in items.items():
            for policy in BARRED_POLICIES:
                add(f"Assay, {policy}, d={d}", n_items, step_ms(bank_of(alpha, beta), policy, outcomes[0]))
        for package, d in ADAPTIVE:
            alpha, beta = items[d]
            given = {"outcomes": outcomes, "alpha": alpha, "beta": beta, "steps": LATENCY_STEPS}
            found = peers.run("adaptive", package, given)
            add(f"{package}, d={d}", n_items, found if isinstance(found, str) else float(found["ms"]))
    return rows


def step_ms(bank: Bank, policy: str, outcomes: FloatArray) -> float:
    """Median of a step after `WARM_UP` outcomes, as `peer_worker` times theirs."""
    engine = AdaptiveEngine(bank, EngineSettings(policy=policy_named(policy), stops=(), seed=1))
    spent: list[float] = []
    step = engine.next()
    while isinstance(step, Choice) and len(spent) < LATENCY_STEPS:
        passed = bool(outcomes[step.index])
        start = time.process_time()
        engine.observe(step.item, passed)
        step = engine.next()
        spent.append(time.process_time() - start)
    return 1e3 * float(np.median(spent[WARM_UP:]))


def bank_of(alpha: FloatArray, beta: FloatArray) -> Bank:
    """A bank of items "item-0", … with these numbers, for abilities of N(0, I)."""
    n, d = alpha.shape
    return replace(
        prior_bank([f"item-{at}" for at in range(n)]),
        alpha=alpha,
        beta=beta,
        prior_mean=np.zeros(d),
        prior_covariance=np.eye(d),
        calibrated=np.ones(n, dtype=np.bool_),
    )


def accuracy_rows(peers: Peers) -> list[dict[str, Any]]:
    """MAE over `RUNS` runs of one simulated lineage: their calibration and choice, p-IRT on their items."""
    lineage = simulate_lineage(1)
    fold = simulated_fold(lineage, range(287), evenly(287, 574, RUNS))
    ours = (arm("vb", PassRate(), PosteriorPredictive(), label="Assay, pass_rate"),)
    scores = evaluate(fold, (random_sampling, strata, rasch, paper, *ours, floor), BUDGETS)
    said: list[dict[str, Any]] = []
    for package, d in ADAPTIVE:
        name = f"{package}, d={d}"
        calibrated = peers.run("calibrate", "mirt", {"outcomes": fold.history.passes, "d": d})
        if isinstance(calibrated, str):
            said.append({"method": name, "said": f"calibration by mirt: {calibrated}"})
            continue
        found = _their_scores(peers, package, fold, calibrated)
        if isinstance(found, str):
            said.append({"method": name, "said": found})
        else:
            scores[name] = found
        print(name, found if isinstance(found, str) else "done", file=sys.stderr, flush=True)
    return [*summary(scores, BUDGETS, fold.units, ("random",)), *said]


def _their_scores(peers: Peers, package: str, fold: Fold, calibrated: Mapping[str, Any]) -> Scores | str:
    given = {"alpha": calibrated["alpha"], "beta": calibrated["beta"], "steps": BUDGETS[-1]}
    found = peers.run("adaptive", package, {**given, "outcomes": fold.tested.passes})
    if isinstance(found, str):
        return found
    bank = bank_of(calibrated["alpha"], calibrated["beta"])
    seen = [evidence_on(bank, fold.tested, found["items"][:, :k], random=False) for k in BUDGETS]
    return Scores.of([PIrt().moments(one) for one in seen], [bounds_of(one) for one in seen], fold.truth)


def main(arguments: Sequence[str]) -> int:
    """Measure every package and write JSON; prints the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.adaptive peers", description=__doc__)
    parser.add_argument("--python", required=True, help="interpreter of the venv of peers-requirements.txt")
    parser.add_argument("--large", action="store_true", help="5,000 × 2,000 as well: several minutes more")
    parser.add_argument("--part", action="append", choices=("calibration", "latency", "accuracy"))
    chosen = parser.parse_args(arguments)
    content = results.load("peers") or {"about": f"one BLAS thread, at most {LIMIT_S} s of CPU for a job", "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(chosen.python, Path(folder))
        sizes = (*SIZES, *LARGE) if chosen.large else SIZES
        parts: dict[str, Callable[[], list[dict[str, Any]]]] = {
            "calibration": lambda: calibration_rows(peers, sizes),
            "latency": lambda: latency_rows(peers),
            "accuracy": lambda: accuracy_rows(peers),
        }
        for part in chosen.part or list(parts):
            kept = [row for row in content["rows"] if row["part"] != part]
            content["rows"] = [*kept, *({"part": part, **row} for row in parts[part]())]
            results.save("peers", content)
    print(report(content))
    return 0


def report(content: Mapping[str, Any]) -> str:
    """The tables."""
    rows = content["rows"]
    calibration = [
        [row["shape"], row["package"], *_numbers(row, ("cpu_s", "slope_rmse", "intercept_rmse"))]
        for row in rows
        if row["part"] == "calibration"
    ]
    latency = [
        [f"{row['items']:,}", row["package"], row.get("said") or f"{row['ms']:.3f}"]
        for row in rows
        if row["part"] == "latency"
    ]
    accuracy = [row for row in rows if row["part"] == "accuracy" and "k" in row]
    failed = [f"{row['method']}: {row['said']}" for row in rows if row["part"] == "accuracy" and "said" in row]
    return "\n\n".join(
        [
            results.markdown(["table", "package", "CPU s", "slope RMSE", "intercept RMSE"], calibration),
            results.markdown(["items", "package", "ms a step"], latency),
            results.error_table(accuracy, BUDGETS),
            *failed,
            FEATURES,
        ]
    )


def _numbers(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    if "said" in row:
        return [row["said"], *([""] * (len(names) - 1))]
    return [f"{row[name]:.2f}" for name in names]
