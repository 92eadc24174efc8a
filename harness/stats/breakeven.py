"""Break-even price of accuracy: when is the more accurate, dearer choice worth it?

With utility q − λc and Δq = q_A − q_B, Δc = c_A − c_B > 0, the two are equal at

    λ* = Δq/Δc,      λ* ∈ [Δq_low/Δc_high, Δq_high/Δc_low]   when Δq_low > 0 and Δc_low > 0

Below λ* take A, above it B. If an interval crosses zero, the choice may depend on what was not verified. Examples:
0.08/10 = 0.008; with A's bill doubled to 80 and the gap read as 0.03: 0.0006.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.stats.identification import Interval


@dataclass(frozen=True)
class BreakEven:
    """`value` at the point estimates, None where A is not both better and dearer; `bounds` None where none are safe.

    `unverified` says that an interval crosses zero. `reading` is the sentence for people.
    """

    value: float | None
    bounds: Interval | None
    unverified: bool
    reading: str


def break_even(
    gain: float, extra_cost: float, gains: Interval | None = None, costs: Interval | None = None
) -> BreakEven:
    """λ* of A against B: `gain` = q_A − q_B, `extra_cost` = c_A − c_B, with their intervals (a point when None)."""
    gains, costs = gains or Interval(gain, gain), costs or Interval(extra_cost, extra_cost)
    value = gain / extra_cost if gain > 0 and extra_cost > 0 else None
    if _crosses(gains) or _crosses(costs):
        which = " and ".join(
            name for name, part in (("difference in accuracy", gains), ("difference in cost", costs)) if _crosses(part)
        )
        return BreakEven(
            value, None, True, f"the interval of the {which} crosses zero: the choice depends on what is not verified"
        )
    if gains.lower > 0 and costs.lower > 0:
        bounds = Interval(gains.lower / costs.upper, gains.upper / costs.lower)
        return BreakEven(value, bounds, False, "A below the break-even price of a unit of cost, B above it")
    if gains.upper < 0 and costs.upper < 0:
        value = gain / extra_cost
        bounds = Interval(gains.upper / costs.lower, gains.lower / costs.upper)
        return BreakEven(value, bounds, False, "B below the break-even price of a unit of cost, A above it")
    return BreakEven(None, None, False, _dominance(gains, costs))


def _crosses(part: Interval) -> bool:
    """Whether both signs are possible; a difference that is exactly zero is known, not unverified."""
    return part.lower <= 0 <= part.upper and part.width > 0


def _dominance(gains: Interval, costs: Interval) -> str:
    if gains.lower >= 0 and costs.upper <= 0:
        same = gains.upper == 0 and costs.lower == 0
        return "the two are equal" if same else "A at any price: no less accurate and no dearer"
    return "B at any price: no less accurate and no dearer"
