"""Policies by name.

    NAME            d_optimal, pass_rate, random, rasch_fisher, mid_range
    NAME:TASKS      difficulty_strata:200
    NAME:BASE       cost_aware:pass_rate (per dollar), time_aware:… (per second), balanced:…, history_cache:…
    …+SHARE         any of these hedged by a random share

A policy over another, named without BASE, stands over pass_rate; `difficulty_strata` without TASKS takes the number of
tasks of the run.
"""

from __future__ import annotations

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.balanced import Balanced
from harness.adaptive.policies.cost_aware import CostAware
from harness.adaptive.policies.d_optimal import DOptimal
from harness.adaptive.policies.difficulty_strata import DifficultyStrata
from harness.adaptive.policies.hedged import Hedged
from harness.adaptive.policies.history_cache import HistoryCache
from harness.adaptive.policies.mid_range import MidRange
from harness.adaptive.policies.pass_rate import PassRate
from harness.adaptive.policies.protocol import Policy
from harness.adaptive.policies.random import Random
from harness.adaptive.policies.rasch_fisher import RaschFisher
from harness.adaptive.policies.traits import ItemTraits

POLICIES: tuple[Policy, ...] = (DOptimal(), PassRate(), Random(), RaschFisher(), MidRange())
"""Those that need nothing but a bank."""

WITH_TRAITS = ("difficulty_strata", "cost_aware", "time_aware", "balanced", "history_cache")
"""Those that need to be told something (`ItemTraits`)."""

DEFAULT_BASE = "pass_rate"


def policy_named(name: str) -> Policy:
    """The policy of this name that needs nothing but a bank, hedged if "+SHARE" follows.

    Raises
    ------
    EngineError
        Listing the names there are, if the share is no probability, or if the policy needs to be told something.
    """
    return _hedged(name, ItemTraits())


def policy_for(name: str, bank: Bank, traits: ItemTraits) -> Policy:
    """The policy of this name for the items of `bank`, whose traits are `traits`.

    Raises
    ------
    EngineError
        As `policy_named`; if traits that the policy needs are not there, or are not one per item.
    """
    traits.require_length(len(bank))
    return _hedged(name, traits)


def _hedged(name: str, traits: ItemTraits) -> Policy:
    base, plus, share = name.partition("+")
    policy = _plain(base, traits)
    return Hedged(policy, _share(share, name)) if plus else policy


def _plain(name: str, traits: ItemTraits) -> Policy:
    head, _, tail = name.partition(":")
    if head == "difficulty_strata":
        return DifficultyStrata(_tasks(tail, name, traits))
    if head == "mid_range" and not tail and traits.pass_rate is not None:
        return MidRange(traits.pass_rate)
    if head in WITH_TRAITS:
        return _over(head, _plain(tail or DEFAULT_BASE, traits), traits)
    for policy in POLICIES:
        if policy.name == name:
            return policy
    names = ", ".join([*(policy.name for policy in POLICIES), *WITH_TRAITS])
    remedy = f"Choose one of {names} (NAME:BASE for the last four, history_cache in back-tests only), or NAME+SHARE"
    raise EngineError(f"no policy {name!r}", place="policy", remedy=remedy)


def _over(head: str, base: Policy, traits: ItemTraits) -> Policy:
    if head == "cost_aware":
        return CostAware(base, _needed(head, "cost_usd", traits.cost_usd))
    if head == "time_aware":
        return CostAware(base, _needed(head, "duration_s", traits.duration_s), kind=head)
    if head == "history_cache":
        return HistoryCache(base, _needed(head, "verdict", traits.verdict))
    if traits.groups is None:
        raise _missing(head, "groups")
    return Balanced(base, traits.groups, traits.quotas)


def _needed(policy: str, trait: str, values: FloatArray | None) -> FloatArray:
    if values is None:
        raise _missing(policy, trait)
    return values


def _missing(policy: str, trait: str) -> EngineError:
    return EngineError(
        f"the items have no {trait}",
        place=f"policy {policy!r}",
        remedy=f"Calibrate on a history that records {trait}, or choose a policy that needs none",
    )


def _tasks(text: str, name: str, traits: ItemTraits) -> int:
    if not text and traits.tasks is not None:
        return traits.tasks
    if not text.isdecimal():
        raise EngineError(
            f"{text!r} is no number of tasks" if text else "the number of tasks is not known",
            place=f"policy {name!r}",
            remedy='Give it with the name, such as "difficulty_strata:200"',
        )
    return int(text)


def _share(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EngineError(
            f"{text!r} is no random share", place=f"policy {name!r}", remedy='Give NAME+SHARE, such as "pass_rate+0.1"'
        ) from None
