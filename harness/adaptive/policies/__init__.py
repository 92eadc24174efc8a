"""Selection policies, one file each; `policy_named` finds one."""

from __future__ import annotations

from harness.adaptive.errors import EngineError
from harness.adaptive.policies.d_optimal import DOptimal
from harness.adaptive.policies.hedged import Hedged
from harness.adaptive.policies.pass_rate import PassRate
from harness.adaptive.policies.protocol import Policy, View
from harness.adaptive.policies.random import Random

__all__ = ["POLICIES", "DOptimal", "Hedged", "PassRate", "Policy", "Random", "View", "policy_named"]

POLICIES: tuple[Policy, ...] = (DOptimal(), PassRate(), Random())


def policy_named(name: str) -> Policy:
    """The shipped policy of this name; "NAME+SHARE" is its hedged form.

    Raises
    ------
    EngineError
        Listing the names there are, or if the share is no probability.
    """
    base, plus, share = name.partition("+")
    for policy in POLICIES:
        if policy.name == base:
            return Hedged(policy, _share(share, name)) if plus else policy
    names = ", ".join(policy.name for policy in POLICIES)
    raise EngineError(f"no policy {name!r}", place="policy", remedy=f"Choose one of {names}, or NAME+SHARE")


def _share(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EngineError(
            f"{text!r} is no random share", place=f"policy {name!r}", remedy='Give NAME+SHARE, such as "pass_rate+0.1"'
        ) from None
