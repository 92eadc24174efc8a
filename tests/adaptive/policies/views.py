"""What a policy is shown, for one agent and for several at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.adaptive import AbilityState, AdaptiveEngine, Bank, Choice, EngineSettings, TasksStop
from harness.adaptive.policies import Policy, View
from harness.adaptive.selection import Lot, view_of


def shown(state: AbilityState, pending: tuple[int, ...] = (), seed: int = 0) -> View:
    return view_of(state, pending, Lot.of(seed, state.bank.item_ids).ties)


def after(bank: Bank, items: Sequence[int]) -> AbilityState:
    """The state once these items were executed, every second one with a pass."""
    return AbilityState.rebuild(bank, [(item, number % 2 == 0) for number, item in enumerate(items)])


def together(views: Sequence[View]) -> View:
    """Views of the same bank as one with a leading axis."""
    first = views[0]
    fields = ("theta", "covariance", "probability", "pool", "rest", "taken", "chosen", "keys")
    shifts = [np.zeros(view.covariance.shape) if view.preposterior is None else view.preposterior for view in views]
    stacked = {name: np.stack([getattr(view, name) for view in views]) for name in fields}
    return View(first.bank, **stacked, preposterior=np.stack(shifts))


def order_of(bank: Bank, policy: Policy, count: int, seed: int = 0) -> list[int]:
    """The first items that a policy chooses, each failed."""
    settings = EngineSettings(policy=policy, seed=seed, stops=(TasksStop(count),))
    engine, found = AdaptiveEngine(bank, settings), []
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, False)
        found.append(step.index)
    return found
