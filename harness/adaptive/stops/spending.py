"""Stop at an amount spent: dollars, or seconds of task time added up over the tasks (not the clock on the wall, which
the engine does not have; with n tasks at a time it is up to n times that).

What the outcomes so far say they took is added up, plus, for each task in flight, the mean of those that said; so the
last wave does not overshoot by its own size, and if it turns out cheaper, the run goes on. An outcome that does not
say is not free: it is left out of the sum and of the mean, and the line for people then says "at least" and how many
are missing. If none says, the rule never stops; pair it with `TasksStop`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.adaptive.errors import EngineError
from harness.adaptive.stops.protocol import EndReason, StopView


@dataclass(frozen=True)
class CostStop:
    """`limit_usd` > 0; raises EngineError otherwise."""

    limit_usd: float

    def __post_init__(self) -> None:
        _require_limit(self.limit_usd, "CostStop.limit_usd")

    def check(self, view: StopView) -> tuple[EndReason, str] | None:
        """COST once the limit is reached."""
        amounts = [spent.cost_usd for spent in view.state.spent]
        detail = _reached(amounts, view.n_pending, self.limit_usd, lambda usd: f"${usd:.2f}")
        return None if detail is None else (EndReason.COST, detail)


@dataclass(frozen=True)
class TimeStop:
    """`limit_s` > 0; raises EngineError otherwise."""

    limit_s: float

    def __post_init__(self) -> None:
        _require_limit(self.limit_s, "TimeStop.limit_s")

    def check(self, view: StopView) -> tuple[EndReason, str] | None:
        """TIME once the limit is reached."""
        amounts = [spent.duration_s for spent in view.state.spent]
        detail = _reached(amounts, view.n_pending, self.limit_s, lambda seconds: f"{seconds:.0f} s of task time")
        return None if detail is None else (EndReason.TIME, detail)


def _reached(amounts: list[float | None], n_pending: int, limit: float, shown: Callable[[float], str]) -> str | None:
    """The line for people once the known amounts and the expected ones in flight reach the limit, else None."""
    known = [amount for amount in amounts if amount is not None]
    total = sum(known)
    expected = n_pending * total / len(known) if known else 0.0
    if total + expected < limit:
        return None
    missing = len(amounts) - len(known)
    told = f"{'at least ' if missing else ''}{shown(total)} spent"
    flying = f", about {shown(expected)} in flight" if n_pending else ""
    unknown = f"; {missing} of {len(amounts)} attempts did not say" if missing else ""
    return f"{told}{flying}, limit {shown(limit)}{unknown}"


def _require_limit(limit: float, place: str) -> None:
    if not 0.0 < limit < float("inf"):
        raise EngineError(f"limit {limit}", place=place, remedy="Give a finite limit above 0")
