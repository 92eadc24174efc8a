"""The source's study on simulated lineages: every method and estimator in every regime, and the side experiments."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.adaptive import experiments, results
from benchmarks.adaptive.auto import auto
from benchmarks.adaptive.folds import evenly, simulated_fold
from benchmarks.adaptive.limits import limits
from benchmarks.adaptive.methods import (
    Method,
    arm,
    evaluate,
    floor,
    k_means,
    oracle,
    paper,
    random_items,
    random_sampling,
    rasch,
    strata,
)
from benchmarks.adaptive.scores import Bootstrap, Scores, summary
from harness.adaptive.estimators import (
    Difference,
    Lure,
    PIrt,
    PosteriorPredictive,
    SampleMean,
)
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.policies import DOptimal, Hedged, MidRange, PassRate
from harness.adaptive.populations.lineage import PLAIN, Shape
from harness.adaptive.populations.regimes import REGIMES, simulate_regime

GRID = (25, 50, 100, 150, 200, 250, 300, 400, 500)
BUDGETS = (100, 200, 300)
WORKERS = 2
MEMORY_DAYS = 30.0
EXPERIMENTS = ("caching", "windows", "history sizes", "in flight", "transfer", "rolling", "limits")
ALONGSIDE = {"in flight": ("1 in flight",), "limits": ("random", "oracle")}  # all in one setting; against what
DEFAULT = arm("vb", PassRate(), Hybrid(0.0), label="pass_rate")  # what the side experiments follow


@dataclass(frozen=True)
class Plan:
    """Of the second half of each lineage `tested` runs, all of them, are tested in the plain regime; in the others, and
    in most side experiments, `tested_elsewhere`, evenly spread.
    """

    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    tested: int = PLAIN.n_runs - PLAIN.n_runs // 2
    tested_elsewhere: int = 96
    shape: Shape = PLAIN
    grid: tuple[int, ...] = GRID

    @property
    def half(self) -> int:
        """Runs that calibrate."""
        return self.shape.n_runs // 2

    def fits(self, checkpoints: Sequence[int]) -> tuple[int, ...]:
        """Those under the number of items."""
        return tuple(k for k in checkpoints if k < self.shape.n_items)


QUICK = Plan(
    seeds=(1,), tested=24, tested_elsewhere=24, shape=Shape(n_runs=120, n_items=150, days=52), grid=(25, 50, 100)
)


@dataclass(frozen=True, eq=False)
class Part:
    """What one worker found: scores by label and what a bootstrap draws."""

    name: str
    seed: int
    scores: dict[Any, Scores]
    units: tuple[str, ...]


def methods_for(regime: str) -> tuple[Method, ...]:
    """All in the plain regime, those that could be a default in the others; what needs the truth where there is one."""
    common: tuple[Method, ...] = (
        random_sampling,
        strata,
        rasch,
        paper,
        arm("vb", PassRate(), PIrt(), PosteriorPredictive(), Hybrid()),
        arm("vb", Hedged(PassRate(), 0.1), PosteriorPredictive(), Hybrid(), Difference(), Lure()),
        random_items("vb", PosteriorPredictive(), Hybrid(), Difference()),
        auto,
        floor,
    )
    if regime in ("plain", "categories", "jump"):
        common = (*common, oracle)
    if regime != "plain":
        return common
    return (
        *common,
        k_means,
        arm("vb", DOptimal(), PosteriorPredictive()),
        arm("vb", Hedged(PassRate(), 0.25), Hybrid(), Difference(), Lure()),
        arm("map", PassRate(), PIrt(), PosteriorPredictive()),
        arm("map", DOptimal(), PIrt()),
        arm("vb", MidRange(), SampleMean(), PosteriorPredictive()),
    )


def regime_part(regime: str, seed: int, plan: Plan) -> Part:
    """Every method in one regime of one seed."""
    lineage = simulate_regime(regime, seed, plan.shape)
    tested = plan.tested if regime == "plain" else plan.tested_elsewhere
    fold = simulated_fold(lineage, range(plan.half), evenly(plan.half, plan.shape.n_runs, tested))
    return Part(regime, seed, evaluate(fold, methods_for(regime), plan.fits(plan.grid)), fold.units)


def experiment_part(name: str, seed: int, plan: Plan) -> Part:
    """One side experiment on one lineage."""
    fewer, ks = max(12, plan.tested_elsewhere // 2), plan.fits(BUDGETS)
    lineage = simulate_regime("plain", seed, plan.shape)
    found: dict[Any, Scores]
    if name == "caching":
        fraction, value, truth = experiments.caching(lineage, plan.half, plan.tested_elsewhere)
        nothing = np.full(value.shape, np.nan)
        found = {"cache": Scores(value, fraction, nothing, np.abs(value - truth[:, None]), truth)}
    elif name == "windows":
        found = experiments.windows(lineage, plan.half, fewer, ks, DEFAULT)
    elif name == "history sizes":
        found = experiments.history_sizes(lineage, plan.half, fewer, ks, (DEFAULT, auto))
    elif name == "transfer":
        found = experiments.transfer(seed, plan.tested_elsewhere, plan.fits(plan.grid), DEFAULT)
    elif name == "limits":
        found = dict(limits(lineage, plan.shape, plan.tested, plan.fits(plan.grid)))
    elif name == "rolling":
        found = {}
        for regime in ("drift", "strong_drift"):
            moved = simulate_regime(regime, seed, plan.shape)
            budgets = plan.fits((100, 200))
            for key, scores in experiments.rolling(
                moved, plan.shape, budgets, PassRate(), PosteriorPredictive(), MEMORY_DAYS
            ).items():
                found[f"{regime}, k = {key[0]}", key[1]] = scores
    else:
        fold = simulated_fold(lineage, range(plan.half), evenly(plan.half, plan.shape.n_runs, plan.tested))
        waiting = [arm("vb", PassRate(), Hybrid(0.0), label=f"{n} in flight", in_flight=n) for n in (1, 8, 32)]
        found = dict(evaluate(fold, waiting, plan.fits(plan.grid)))
    size = len(next(iter(found.values())).truth)
    return Part(name, seed, found, tuple(f"{seed}/{place}" for place in range(size)))


def pooled(parts: Sequence[Part]) -> tuple[dict[Any, Scores], tuple[str, ...]]:
    """The scores of all seeds together, in the order of the seeds."""
    ordered = sorted(parts, key=lambda part: part.seed)
    labels = [label for label in ordered[0].scores if all(label in part.scores for part in ordered)]
    units = tuple(unit for part in ordered for unit in part.units)
    return {label: Scores.joined([part.scores[label] for part in ordered]) for label in labels}, units


def regime_content(regime: str, parts: Sequence[Part], plan: Plan) -> dict[str, Any]:
    """The JSON of one regime."""
    scores, units = pooled(parts)
    checkpoints = plan.fits(plan.grid)
    return {
        "about": f"{regime}: {len(parts)} lineages of {plan.shape.n_runs} runs × {plan.shape.n_items} items, the first"
        f" half calibrates, {len(units)} runs of the second half tested",
        "seeds": [part.seed for part in sorted(parts, key=lambda part: part.seed)],
        "checkpoints": list(checkpoints),
        "rows": summary(scores, checkpoints, units, ("random", "paper", "oracle", "rasch")),
    }


def experiment_content(name: str, parts: Sequence[Part], plan: Plan) -> dict[str, Any]:
    """The JSON of one side experiment."""
    scores, units = pooled(parts)
    head = {"about": name, "seeds": sorted(part.seed for part in parts)}
    if name == "caching":
        return {**head, "checkpoints": [], "rows": _caching_rows(scores["cache"], units)}
    rows: list[dict[str, object]] = []
    if name in ALONGSIDE:
        checkpoints = plan.fits(plan.grid)
        return {**head, "checkpoints": list(checkpoints), "rows": summary(scores, checkpoints, units, ALONGSIDE[name])}
    checkpoints = (0,) if name == "rolling" else plan.fits(plan.grid) if name == "transfer" else plan.fits(BUDGETS)
    for setting in dict.fromkeys(setting for setting, _ in scores):
        group = {method: value for (at, method), value in scores.items() if at == setting}
        for row in summary(group, checkpoints, units, ("random", "frozen")):
            rows.append({"setting": setting, **row})
    return {**head, "checkpoints": list(checkpoints), "rows": rows}


def _caching_rows(scores: Scores, units: Sequence[str]) -> list[dict[str, object]]:
    bootstrap = Bootstrap(units)
    return [
        {
            "epsilon": epsilon,
            "executed": round(float(scores.lower[:, at].mean()), 4),
            "mae_pp": bootstrap.mean(100.0 * scores.error[:, at]).as_list(),
        }
        for at, epsilon in enumerate(experiments.EPSILONS)
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the study and write its JSON, tables and plots."""
    parser = argparse.ArgumentParser(prog="benchmarks.adaptive study", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="lineages per regime, seeds 1, 2, …")
    parser.add_argument("--regime", action="append", choices=sorted(REGIMES), help="only these regimes")
    parser.add_argument("--experiment", action="append", choices=EXPERIMENTS, help="only these side experiments")
    parser.add_argument("--quick", action="store_true", help="one small lineage each: does it run?")
    chosen = parser.parse_args(arguments)
    plan = QUICK if chosen.quick else Plan(seeds=tuple(range(1, chosen.seeds + 1)))
    some = bool(chosen.regime or chosen.experiment)
    regimes = chosen.regime or ([] if some else list(REGIMES))
    names = chosen.experiment or ([] if some else list(EXPERIMENTS))
    jobs: list[tuple[str, Callable[[], Part]]] = [
        (regime, partial(regime_part, regime, seed, plan)) for regime in regimes for seed in plan.seeds
    ]
    jobs += [(name, partial(experiment_part, name, seed, plan)) for name in names for seed in plan.seeds]
    gathered: dict[str, list[Part]] = {name: [] for name, _ in jobs}
    started = time.perf_counter()
    with ProcessPoolExecutor(WORKERS) as pool:
        for done in as_completed([pool.submit(job) for _, job in jobs]):
            part = done.result()
            gathered[part.name].append(part)
            print(f"{time.perf_counter() - started:6.0f} s  {part.name}, seed {part.seed}", file=sys.stderr, flush=True)
            if len(gathered[part.name]) == len(plan.seeds):
                _finish(part.name, gathered[part.name], plan, chosen.quick)
    return 0


def _finish(name: str, parts: Sequence[Part], plan: Plan, quick: bool) -> None:
    if name in REGIMES:
        content = regime_content(name, parts, plan)
        print(results.report(f"Regime {name}", content, ("random",)), flush=True)
    else:
        content = experiment_content(name, parts, plan)
        print(f"## {name}\n\n{side_table(name, content)}\n", flush=True)
    if not quick:
        results.save(f"study_{name.replace(' ', '_')}", content)


def side_table(name: str, content: dict[str, Any]) -> str:
    """The table of a side experiment."""
    rows = content["rows"]
    if name == "caching":
        lines = [
            [f"{row['epsilon']:.2f}", f"{100 * row['executed']:.1f} %", results.interval(row["mae_pp"])] for row in rows
        ]
        return results.markdown(["ε", "executed", "MAE, pp"], lines)
    if name in ALONGSIDE:
        tables = [results.error_table(rows, content["checkpoints"])]
        tables += [results.ratio_table(rows, content["checkpoints"], base) for base in ALONGSIDE[name]]
        return "\n\n".join(tables)
    labelled = [{**row, "method": f"{row['setting']}: {row['method']}"} for row in rows]
    table = results.error_table(labelled, content["checkpoints"])
    if name == "rolling":
        table += "\n\n" + results.ratio_table(labelled, content["checkpoints"], "frozen")
    return table
