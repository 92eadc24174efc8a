"""Release decisions from partial runs: false alarms, missed regressions, tasks used, against a fixed number of tasks.

Run with `python -m benchmarks.adaptive.decisions [--seeds 5] [--agents 15] [--margin 0.02] [--json FILE]`.

Simulated populations of 519 items and three abilities, one per seed, calibrated on 287 runs. Each of `--agents`
baseline agents has a full run; its candidates are the same agent with its specific abilities changed a little and the
general one moved so that the mean pass probability differs by exactly 0, ±1, ±2 or ±4 points. Outcomes are drawn anew
("independent"), or repeat the baseline's luck on 7 of 10 items ("repeating": what a small change of one agent looks
like). A rule looks after every outcome. Rules are judged by two truths, which differ by the luck of two full runs,
about 2 points:

    suite   the realised rates: the difference that a full run of the candidate shows
    agent   the mean pass probabilities: the difference that repeating full runs for ever would show

false alarm: truth ≥ 0 and called worse ("at 0": 0 to half a point). missed: truth ≤ −margin and called no worse or
better. power: truth ≤ −margin and called worse. agreement: called worse or not, as the full run would at −margin;
"clear" leaves out differences between −margin and 0, where either answer is right. The fixed rule calls worse when its
one-sided 95 % bound after k tasks is under 0, on the same choices and estimates.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from harness.adaptive import Bank, CalibrationSettings, calibrate, policy_named, simulate_population
from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid
from harness.adaptive.decision import Difference, Side, Truth, bounds_of, difference_of, evidence_of
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence
from harness.adaptive.planning.trajectories import Study, run_study

ITEMS, RUNS, DIMS = 519, 287, 3
DELTAS = (-0.04, -0.02, -0.01, 0.0, 0.01, 0.02, 0.04)
SPECIFIC_CHANGE_SD = 0.2
REPEATED = {"independent": 0.0, "repeating": 0.7}
ALPHA, ONE_SIDED, MINIMUM, GIVE_UP = 0.05, 1.645, 20, 0.05
FIXED = (100, 200, 300, 400)
REFERENCE = 200


@dataclass(frozen=True, eq=False)
class Candidates:
    """A candidates: `probability` and `outcomes` (A, N) of baseline and candidate, `delta` (A,) the true difference."""

    baseline: FloatArray
    candidate: FloatArray
    delta: FloatArray

    @property
    def realised(self) -> FloatArray:
        """Difference of the full runs, (A,)."""
        return np.asarray(self.candidate.mean(axis=1) - self.baseline.mean(axis=1))


@dataclass(frozen=True)
class Row:
    """One rule on one regime, judged by one truth."""

    regime: str
    truth: str
    rule: str
    false_alarms: float
    false_alarms_at_0: float
    missed: float
    power: float
    undecided: float
    agreement: float
    agreement_clear: float
    mean_tasks: float
    median_tasks: float


class Recorder:
    """Passes as an estimator of the study and keeps every difference."""

    def __init__(self, baseline: Side, truth: Truth) -> None:
        self.name: str = truth
        self._baseline, self._truth = baseline, truth
        self._kept: list[Difference] = []

    def moments(self, evidence: Evidence) -> Moments:
        """The difference now; kept."""
        found = difference_of(evidence, self._baseline, self._truth)
        self._kept.append(found)
        return Moments(found.value, found.standard_error)

    @property
    def path(self) -> Difference:
        """All of them, arrays (A, K)."""
        stacked = {
            part.name: np.stack([getattr(at, part.name) for at in self._kept], axis=1) for part in fields(Difference)
        }
        return Difference(**stacked)


def draw_candidates(seed: int, n_baselines: int, repeated: float) -> Candidates:
    """Every baseline with one candidate per delta that its range allows."""
    names = [f"item-{index}" for index in range(ITEMS)]
    population = simulate_population(seed, n_baselines, names, DIMS, prefix="baseline")
    rng = np.random.default_rng([seed, 7])
    before, after, deltas = [], [], []
    for agent in range(n_baselines):
        theta = population.theta[agent]
        p = population.probability(agent)
        for delta in DELTAS:
            changed = theta + np.concatenate([[0.0], rng.normal(0.0, SPECIFIC_CHANGE_SD, DIMS - 1)])
            low, high = -4.0, 4.0
            for _ in range(60):
                shift = (low + high) / 2
                moved = sigmoid(population.alpha @ changed + shift * population.alpha[:, 0] - population.beta)
                low, high = (shift, high) if moved.mean() - p.mean() < delta else (low, shift)
            if abs(moved.mean() - p.mean() - delta) < 1e-6:
                before.append(p)
                after.append(moved)
                deltas.append(delta)
    luck = rng.random((len(deltas), ITEMS))
    again = np.where(rng.random(luck.shape) < repeated, luck, rng.random(luck.shape))
    return Candidates(
        baseline=(luck < np.array(before)).astype(np.float64),
        candidate=(again < np.array(after)).astype(np.float64),
        delta=np.array(deltas),
    )


def calibrated(seed: int) -> Bank:
    """The bank of one population's history."""
    history = simulate_population(seed, RUNS, [f"item-{index}" for index in range(ITEMS)], DIMS)
    return calibrate(history.responses(), CalibrationSettings(dims=DIMS)).bank


def paths(bank: Bank, drawn: Candidates, policy: str) -> dict[Truth, Difference]:
    """The differences after every outcome, (A, N), by truth."""
    everything = np.ones(drawn.baseline.shape)
    baseline = Side(evidence_of(bank, drawn.baseline, everything))
    truths: tuple[Truth, ...] = ("suite", "agent")
    recorders = tuple(Recorder(baseline, truth) for truth in truths)
    seeds = tuple(range(len(drawn.delta)))
    study = Study(policy_named(policy), recorders, tuple(range(1, ITEMS + 1)), seeds)
    run_study(bank, drawn.candidate, everything, study)
    return dict(zip(truths, (recorder.path for recorder in recorders), strict=True))


def joined(parts: Sequence[Difference]) -> Difference:
    """All agents of all seeds."""
    return Difference(
        **{part.name: np.concatenate([getattr(one, part.name) for one in parts]) for part in fields(Difference)}
    )


def sequential(path: Difference, margin: float, beta: float) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Tasks used, called worse, called no worse or better: the verdict of `decide` after every outcome, until there is
    one or none is in reach.
    """
    bounds = bounds_of(path, margin, ALPHA, beta)
    fine = bounds.lower > -margin
    worse = (bounds.upper < 0) & ~fine
    fine[:, : MINIMUM - 1] = worse[:, : MINIMUM - 1] = False
    stop = fine | worse | (bounds.within_reach <= GIVE_UP)
    stop[:, : MINIMUM - 1], stop[:, -1] = False, True
    at, rows = stop.argmax(axis=1), np.arange(len(stop))
    return at + 1.0, worse[rows, at], fine[rows, at]


def fixed(path: Difference, margin: float, tasks: int) -> tuple[FloatArray, BoolArray, BoolArray]:
    """The same for one look after `tasks` outcomes."""
    value, reach = path.value[:, tasks - 1], ONE_SIDED * path.standard_error[:, tasks - 1]
    fine = value - reach > -margin
    return np.full(len(value), float(tasks)), (value + reach < 0) & ~fine, fine


def judged(
    labels: tuple[str, str, str], result: tuple[FloatArray, BoolArray, BoolArray], drawn: Candidates, margin: float
) -> Row:
    """The figures of one rule."""
    regime, truth, rule = labels
    tasks, worse, fine = result
    real = drawn.realised
    target = real if truth == "suite" else drawn.delta
    full, regression = real <= -margin + 1e-9, target <= -margin + 1e-9
    clear = full | (real >= 0)
    return Row(
        regime=regime,
        truth=truth,
        rule=rule,
        false_alarms=float(worse[target >= 0].mean()),
        false_alarms_at_0=float(worse[(target >= 0) & (target < 0.005)].mean()),
        missed=float(fine[regression].mean()),
        power=float(worse[regression].mean()),
        undecided=float((~worse & ~fine).mean()),
        agreement=float((worse == full).mean()),
        agreement_clear=float((worse == full)[clear].mean()),
        mean_tasks=float(tasks.mean()),
        median_tasks=float(np.median(tasks)),
    )


def rows_of(regime: str, by_truth: dict[Truth, Difference], drawn: Candidates, margin: float) -> list[Row]:
    """Fixed and sequential rules for both truths."""
    rows = []
    for truth, path in by_truth.items():
        for tasks in FIXED:
            rows.append(judged((regime, truth, f"fixed {tasks}"), fixed(path, margin, tasks), drawn, margin))
        for beta in (ALPHA, 0.2, 0.5):
            label = f"sequential, missed ≤ {100 * beta:g} %"
            rows.append(judged((regime, truth, label), sequential(path, margin, beta), drawn, margin))
        if truth == "agent":
            real = drawn.realised
            whole = np.full(len(real), float(ITEMS))
            full = (whole, real <= -margin + 1e-9, real > -margin + 1e-9)
            rows.append(judged((regime, truth, "the full run at −margin"), full, drawn, margin))
            other = sequential(by_truth["suite"], margin, ALPHA)
            rows.append(judged((regime, truth, "the suite's sequential"), other, drawn, margin))
    return rows


def verdict_on(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """The bars: false alarms of every sequential rule, and tasks against the fixed rule at equal power."""
    found = []
    for regime, truth in dict.fromkeys((row.regime, row.truth) for row in rows):
        here = [row for row in rows if (row.regime, row.truth) == (regime, truth)]
        rules = [row for row in here if row.rule.startswith("sequential")]
        highest = max(row.false_alarms for row in rules)
        found.append((f"{regime}, {truth}: false alarms at most {highest:.1%} (bar 5 %)", highest <= ALPHA))
        reference = next(row for row in here if row.rule == f"fixed {REFERENCE}")
        equal = [row for row in rules if row.power >= reference.power]
        least = min((row.mean_tasks for row in equal), default=float("inf"))
        text = f"{regime}, {truth}: {least:.0f} tasks on average at the power of fixed {REFERENCE}"
        found.append((f"{text} ({reference.power:.0%})", least < REFERENCE))
    return found


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    heads = "false alarms  (at 0)  missed  power  undecided  agreement  (clear)  mean tasks  median"
    print(f"{'regime':<12} {'truth':<6} {'rule':<25} {heads}")
    for row in rows:
        print(
            f"{row.regime:<12} {row.truth:<6} {row.rule:<25} {row.false_alarms:>12.1%} {row.false_alarms_at_0:>7.1%}"
            f" {row.missed:>7.1%} {row.power:>6.1%} {row.undecided:>10.1%} {row.agreement:>10.1%}"
            f" {row.agreement_clear:>8.1%} {row.mean_tasks:>11.0f} {row.median_tasks:>7.0f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when the bar on the suite's truth fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--agents", type=int, default=15, help="baseline agents per seed")
    parser.add_argument("--margin", type=float, default=0.02)
    parser.add_argument("--policy", default="pass_rate")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    collected: dict[str, list[tuple[Candidates, dict[Truth, Difference]]]] = {regime: [] for regime in REPEATED}
    for seed in range(1, options.seeds + 1):
        bank = calibrated(seed)
        for regime, repeated in REPEATED.items():
            drawn = draw_candidates(seed, options.agents, repeated)
            collected[regime].append((drawn, paths(bank, drawn, options.policy)))
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    for regime, parts in collected.items():
        drawn = Candidates(
            *(np.concatenate([getattr(one, part.name) for one, _ in parts]) for part in fields(Candidates))
        )
        truths: tuple[Truth, ...] = ("suite", "agent")
        by_truth: dict[Truth, Difference] = {truth: joined([path[truth] for _, path in parts]) for truth in truths}
        rows += rows_of(regime, by_truth, drawn, options.margin)
    show(rows)
    bars = verdict_on(rows)
    for text, held in bars:
        print(f"{'held' if held else 'MISSED'}: {text}")
    if options.json:
        written = {"rows": [asdict(row) for row in rows], "bars": [{"text": text, "held": held} for text, held in bars]}
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    return int(not all(held for text, held in bars if ", suite:" in text))


if __name__ == "__main__":
    raise SystemExit(main())
