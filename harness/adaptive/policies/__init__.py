"""Selection policies, one file each; `policy_named` finds one."""

from __future__ import annotations

from harness.adaptive.errors import EngineError
from harness.adaptive.policies.d_optimal import DOptimal
from harness.adaptive.policies.pass_rate import PassRate
from harness.adaptive.policies.protocol import Policy, View
from harness.adaptive.policies.random import Random

__all__ = ["POLICIES", "DOptimal", "PassRate", "Policy", "Random", "View", "policy_named"]

POLICIES: tuple[Policy, ...] = (DOptimal(), PassRate(), Random())


def policy_named(name: str) -> Policy:
    """The shipped policy of this name; raises EngineError listing the names there are."""
    for policy in POLICIES:
        if policy.name == name:
            return policy
    names = ", ".join(policy.name for policy in POLICIES)
    raise EngineError(f"no policy {name!r}", place="policy", remedy=f"Choose one of {names}")
