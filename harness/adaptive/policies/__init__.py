"""Selection policies, one file each; `policy_named` and `policy_for` find one."""

from __future__ import annotations

from harness.adaptive.policies.balanced import Balanced
from harness.adaptive.policies.catalogue import POLICIES, WITH_TRAITS, policy_for, policy_named
from harness.adaptive.policies.cost_aware import CostAware
from harness.adaptive.policies.d_optimal import DOptimal
from harness.adaptive.policies.difficulty_strata import DifficultyStrata
from harness.adaptive.policies.hedged import Hedged
from harness.adaptive.policies.history_cache import Cache, HistoryCache, cache_of
from harness.adaptive.policies.mid_range import MidRange
from harness.adaptive.policies.pass_rate import PassRate
from harness.adaptive.policies.protocol import Policy, View
from harness.adaptive.policies.random import Random
from harness.adaptive.policies.rasch_fisher import RaschFisher
from harness.adaptive.policies.traits import ItemTraits

__all__ = [
    "POLICIES",
    "WITH_TRAITS",
    "Balanced",
    "Cache",
    "CostAware",
    "DOptimal",
    "DifficultyStrata",
    "Hedged",
    "HistoryCache",
    "ItemTraits",
    "MidRange",
    "PassRate",
    "Policy",
    "Random",
    "RaschFisher",
    "View",
    "cache_of",
    "policy_for",
    "policy_named",
]
