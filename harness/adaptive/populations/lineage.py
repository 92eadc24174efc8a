"""Simulated histories of one evolving agent: runs in order of time, of the shape that She & Lin 2026 describe
(arXiv:2609.21267): 574 runs of 519 items over 52 days, of which the first half calibrates.

A few branches of the agent are developed side by side. Each has an ability vector that walks slowly,

    a_t = φ a_{t−1} + √(1 − φ²) s ∘ ε_t,        θ_run = a_t of its branch + ρ s ∘ ε'

so that runs of one branch resemble each other and more so when close in time; s is 0.5 on the general axis and larger
on the specific ones. P(pass) = σ(α·θ − β), every item loading on the general axis and on one specific axis. The numbers
in `PLAIN` were set so that random sampling, Rasch testing, 2PL testing and the oracle err about as the paper and a
prototype of ours reported (`benchmarks/adaptive`), before any estimator of this package was tried on it.

`regimes` bends this in ways that a calibrated 2PL model does not know. As in `simulate`, every number is a function of
the seed and names alone. An instrument for tests and benchmarks; it says nothing about any real agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray, normal_quantile, sigmoid
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms
from harness.adaptive.responses import Responses

FIRST_DAY = date(2026, 1, 1)
EARLY_SHARE = 28 / 52  # of the days: until the split of the source's calibration and test runs
SWITCHING = 0.3  # the chance that the next run is of another branch drawn at random


@dataclass(frozen=True)
class Shape:
    """`n_runs` over `days` on `n_items`, of `branches` of the agent; `d` abilities, the first general.

    `walk` is φ, `noise` ρ, `general_spread` and `specific_spread` s. Loadings: `general` × exp(0.3 ε) and `specific`
    + `specific_sd` ε; difficulties N(`difficulty`, `difficulty_sd`²).
    """

    n_runs: int = 574
    n_items: int = 519
    days: int = 52
    branches: int = 6
    d: int = 6
    walk: float = 0.98
    noise: float = 0.3
    general_spread: float = 0.5
    specific_spread: float = 1.3
    general: float = 0.8
    specific: float = 1.0
    specific_sd: float = 0.4
    difficulty: float = -1.9
    difficulty_sd: float = 1.2

    def __post_init__(self) -> None:
        if min(self.n_runs, self.n_items, self.days, self.branches, self.d) < 1:
            raise AdaptiveError(f"{self}", place="Shape", remedy="Give at least one run, item, day, branch and ability")


PLAIN = Shape()


@dataclass(frozen=True, eq=False)
class Truth:
    """The 2PL numbers a lineage was drawn from, where it was: `theta` (R, d), `alpha` (N, d), `beta` (N,)."""

    theta: FloatArray
    alpha: FloatArray
    beta: FloatArray

    @property
    def logits(self) -> FloatArray:
        """(R, N)."""
        return np.asarray(self.theta @ self.alpha.T - self.beta)


@dataclass(frozen=True, eq=False)
class Lineage:
    """R runs in order of time.

    `days` (R,) count from 0. `probability` and `outcomes` (R, N). `truth` is None where no 2PL model of known items
    gives these probabilities. `item_groups` (N,) and `families` (R,) number the items' categories or testlets and the
    runs' agent families, all 0 where there is one.
    """

    seed: int
    run_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    days: IntArray
    probability: FloatArray
    outcomes: FloatArray
    truth: Truth | None = None
    item_groups: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    families: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def responses(self, rows: Sequence[int] | IntArray) -> Responses:
        """These runs as a complete, dated history."""
        chosen = np.asarray(rows, dtype=np.int64)
        dates = tuple((FIRST_DAY + timedelta(days=int(day))).isoformat() for day in self.days[chosen])
        outcomes = self.outcomes[chosen]
        return Responses(
            tuple(self.run_ids[r] for r in chosen), self.item_ids, outcomes, np.ones(outcomes.shape), dates
        )


def simulate_lineage(seed: int, shape: Shape = PLAIN) -> Lineage:
    """The well-specified case: a 2PL population with `shape.d` abilities."""
    runs, items = run_names(shape), item_names(shape)
    truth = Truth(walks(seed, shape), *loadings(seed, shape))
    return drawn(seed, runs, items, days_of(shape), sigmoid(truth.logits), truth)


def run_names(shape: Shape) -> tuple[str, ...]:
    """run-0, … in order of time."""
    return tuple(f"run-{index}" for index in range(shape.n_runs))


def item_names(shape: Shape) -> tuple[str, ...]:
    """item-0, …"""
    return tuple(f"item-{index}" for index in range(shape.n_items))


def days_of(shape: Shape) -> IntArray:
    """The day of each run, (R,): half of the runs evenly over the first 28 of 52 days, half over the rest."""
    half, early = shape.n_runs // 2, max(1, round(shape.days * EARLY_SHARE))
    late = shape.n_runs - half
    first = np.arange(half) * early // max(half, 1)
    return np.concatenate([first, early + np.arange(late) * (shape.days - early) // late]).astype(np.int64)


def drawn(
    seed: int,
    runs: tuple[str, ...],
    items: tuple[str, ...],
    days: IntArray,
    probability: FloatArray,
    truth: Truth | None = None,
    *,
    item_groups: IntArray | None = None,
    families: IntArray | None = None,
) -> Lineage:
    """The lineage with outcomes drawn from `probability` (R, N), each cell on its own."""
    chance = uniforms(mix(seeded_keys(seed, "outcome", runs)[:, None], name_keys(items)[None, :]))
    return Lineage(
        seed=seed,
        run_ids=runs,
        item_ids=items,
        days=days,
        probability=probability,
        outcomes=(chance < probability).astype(np.float64),
        truth=truth,
        item_groups=np.zeros(len(items), dtype=np.int64) if item_groups is None else item_groups,
        families=np.zeros(len(runs), dtype=np.int64) if families is None else families,
    )


def walks(seed: int, shape: Shape) -> FloatArray:
    """θ of every run, (R, d)."""
    runs = run_names(shape)
    spread = np.full(shape.d, shape.specific_spread)
    spread[0] = shape.general_spread
    branch = branches_of(seed, shape)
    steps = normals(seed, "walk", runs, shape.branches * shape.d).reshape(-1, shape.branches, shape.d)
    now = normals(seed, "begin", [f"branch-{b}" for b in range(shape.branches)], shape.d) * spread
    theta = spread * shape.noise * normals(seed, "noise", runs, shape.d)
    for run in range(shape.n_runs):
        now = shape.walk * now + np.sqrt(1.0 - shape.walk**2) * spread * steps[run]
        theta[run] += now[branch[run]]
    return theta


def branches_of(seed: int, shape: Shape) -> IntArray:
    """The branch of every run, (R,): the last one's, or with probability `SWITCHING` any."""
    runs = run_names(shape)
    fresh = np.floor(uniforms(seeded_keys(seed, "branch", runs)) * shape.branches).astype(np.int64)
    switches = uniforms(seeded_keys(seed, "switch", runs)) < SWITCHING
    switches[0] = True
    return np.asarray(fresh[np.maximum.accumulate(np.where(switches, np.arange(shape.n_runs), 0))])


def loadings(seed: int, shape: Shape) -> tuple[FloatArray, FloatArray]:
    """α (N, d) and β (N,)."""
    items = item_names(shape)
    draws = normals(seed, "items", items, 3)
    alpha = np.zeros((shape.n_items, shape.d))
    alpha[:, 0] = shape.general * np.exp(0.3 * draws[:, 0])
    if shape.d > 1:
        axis = 1 + np.floor(uniforms(seeded_keys(seed, "axis", items)) * (shape.d - 1)).astype(np.int64)
        alpha[np.arange(shape.n_items), axis] = shape.specific + shape.specific_sd * draws[:, 1]
    return alpha, shape.difficulty + shape.difficulty_sd * draws[:, 2]


def normals(seed: int, purpose: str, names: Sequence[str], columns: int) -> FloatArray:
    """(n, columns) standard normal numbers that belong to the seed, the purpose and each name."""
    salt = name_keys([f"column {column}" for column in range(columns)])
    return normal_quantile(uniforms(mix(seeded_keys(seed, purpose, names)[:, None], salt[None, :])))
