"""Lineages that break what a calibrated 2PL model takes for granted, one function each (`REGIMES` names them).

plain        nothing is wrong: `lineage.simulate_lineage`
categories   24 categories of uneven size, each with an ability of its own: many more than any d that is tried
testlets     items in groups of six; each run shares luck N(0, 1) within a group: outcomes depend given θ
guessing     half of the items pass with probability c ~ U(0, .4) whatever the ability
drift        every difficulty walks, 1 logit (sd) over the 52 days; an eighth of the items jump by ±2 on some day
strong_drift twice that: 2 logits (sd), and a quarter of the items jump
jump         60 % through, a new model: general ability +2.5 (five times its past spread), the rest as it was
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from harness.adaptive.arrays import sigmoid
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.keys import seeded_keys, uniforms
from harness.adaptive.populations.lineage import (
    PLAIN,
    Lineage,
    Shape,
    Truth,
    days_of,
    drawn,
    item_names,
    loadings,
    normals,
    run_names,
    simulate_lineage,
    walks,
)

CATEGORIES = 24
TESTLET_ITEMS, TESTLET_SD = 6, 1.0
GUESSING_SHARE, GUESSING_MOST = 0.5, 0.4
DRIFT_SD, CHANGED_SHARE, CHANGE = 1.0, 0.125, 2.0
JUMP_FROM, JUMP = 0.6, 2.5
FAMILIES, FAMILY_RUNS, FAMILY_ITEM_SD = 5, 299, 0.5


def categories(seed: int, shape: Shape = PLAIN) -> Lineage:
    """A 2PL model with 1 + 24 abilities, the items of a category all alike but for difficulty."""
    wide = replace(shape, d=1 + CATEGORIES, specific=1.0, specific_sd=0.0, noise=0.6)
    alpha, beta = loadings(seed, wide)
    # Sizes fall like 1/rank, as the categories of a collected benchmark do.
    bounds = np.cumsum(1.0 / np.arange(1, CATEGORIES + 1))
    draw = uniforms(seeded_keys(seed, "category", item_names(wide)))
    group = np.minimum(np.searchsorted(bounds / bounds[-1], draw), CATEGORIES - 1).astype(np.int64)
    alpha[:, 1:] = 0.0
    alpha[np.arange(wide.n_items), 1 + group] = wide.specific
    truth = Truth(walks(seed, wide), alpha, beta)
    probability = sigmoid(truth.logits)
    return drawn(seed, run_names(wide), item_names(wide), days_of(wide), probability, truth, item_groups=group)


def shared_luck(seed: int, shape: Shape = PLAIN) -> Lineage:
    """The plain lineage with shared luck in groups of `TESTLET_ITEMS` items."""
    plain = _truth(seed, shape)
    runs, items = run_names(shape), item_names(shape)
    group = np.arange(shape.n_items, dtype=np.int64) // TESTLET_ITEMS
    luck = TESTLET_SD * normals(seed, "luck", runs, int(group.max()) + 1)
    return drawn(seed, runs, items, days_of(shape), sigmoid(plain.logits + luck[:, group]), item_groups=group)


def guessing(seed: int, shape: Shape = PLAIN) -> Lineage:
    """c + (1 − c) σ(z) in place of σ(z), c > 0 for half of the items; harder by 1 logit, so that it matters."""
    plain = _truth(seed, replace(shape, difficulty=shape.difficulty + 1.0))
    items = item_names(shape)
    guesses = uniforms(seeded_keys(seed, "guesses", items)) < GUESSING_SHARE
    floor = np.where(guesses, GUESSING_MOST * uniforms(seeded_keys(seed, "floor", items)), 0.0)
    probability = floor + (1.0 - floor) * sigmoid(plain.logits)
    return drawn(seed, run_names(shape), items, days_of(shape), probability)


def drift(seed: int, shape: Shape = PLAIN, strength: float = 1.0) -> Lineage:
    """Difficulties that move from day to day; some jump once. `strength` multiplies the walk and the jumping share."""
    plain = _truth(seed, shape)
    items, days = item_names(shape), days_of(shape)
    steps = normals(seed, "drift", items, shape.days) * (strength * DRIFT_SD / np.sqrt(shape.days))
    moved = np.cumsum(steps, axis=1)
    changes = uniforms(seeded_keys(seed, "changes", items)) < strength * CHANGED_SHARE
    when = np.floor(uniforms(seeded_keys(seed, "change day", items)) * shape.days)
    sign = np.where(uniforms(seeded_keys(seed, "change sign", items)) < 0.5, -CHANGE, CHANGE)
    moved += np.where(changes[:, None] & (np.arange(shape.days) >= when[:, None]), sign[:, None], 0.0)
    return drawn(seed, run_names(shape), items, days, sigmoid(plain.logits - moved[:, days].T))


def strong_drift(seed: int, shape: Shape = PLAIN) -> Lineage:
    """`drift` at twice the strength."""
    return drift(seed, shape, 2.0)


def jump(seed: int, shape: Shape = PLAIN) -> Lineage:
    """Runs after `JUMP_FROM` of all have a general ability that no run before had."""
    plain = _truth(seed, shape)
    theta = plain.theta.copy()
    theta[int(JUMP_FROM * shape.n_runs) :, 0] += JUMP
    truth = Truth(theta, plain.alpha, plain.beta)
    return drawn(seed, run_names(shape), item_names(shape), days_of(shape), sigmoid(truth.logits), truth)


def families(seed: int, shape: Shape = PLAIN) -> Lineage:
    """The plain lineage (family 0) followed by `FAMILY_RUNS` runs of five other agent families on the same items.

    Each family has a centre of its own on every axis (general sd 0.7, specific sd as within the lineage), and finds
    each item harder or easier by N(0, ½²). No `truth`: the items' numbers are not the same for all.
    """
    plain = simulate_lineage(seed, shape)
    base = _truth(seed, shape)
    names = tuple(f"family-run-{index}" for index in range(FAMILY_RUNS))
    family = np.arange(FAMILY_RUNS, dtype=np.int64) * FAMILIES // FAMILY_RUNS
    centres = normals(seed, "centre", [f"family-{f}" for f in range(FAMILIES)], shape.d)
    spread = np.r_[0.7, np.full(shape.d - 1, shape.specific_spread)]
    inner = 0.5 * np.r_[shape.general_spread, np.full(shape.d - 1, shape.specific_spread)]
    theta = (centres * spread)[family] + inner * normals(seed, "member", names, shape.d)
    taste = FAMILY_ITEM_SD * normals(seed, "taste", item_names(shape), FAMILIES)
    probability = sigmoid(theta @ base.alpha.T - base.beta + taste.T[family])
    return drawn(
        seed,
        (*plain.run_ids, *names),
        plain.item_ids,
        np.concatenate([plain.days, np.full(FAMILY_RUNS, shape.days, dtype=np.int64)]),
        np.concatenate([plain.probability, probability]),
        families=np.concatenate([plain.families, 1 + family]),
    )


REGIMES: dict[str, Callable[[int, Shape], Lineage]] = {
    "plain": simulate_lineage,
    "categories": categories,
    "testlets": shared_luck,
    "guessing": guessing,
    "drift": drift,
    "strong_drift": strong_drift,
    "jump": jump,
}


def simulate_regime(name: str, seed: int, shape: Shape = PLAIN) -> Lineage:
    """The lineage of this regime; raises AdaptiveError listing the names there are."""
    if name not in REGIMES:
        raise AdaptiveError(f"no regime {name!r}", place="regime", remedy=f"Choose one of {', '.join(REGIMES)}")
    return REGIMES[name](seed, shape)


def _truth(seed: int, shape: Shape) -> Truth:
    return Truth(walks(seed, shape), *loadings(seed, shape))
