"""History caching: items whose recent verdicts hardly vary are not executed; their usual verdict is reused.

With ȳ_i the pass rate of item i over the runs of the last seven days, an item with at least five trials there and

    min(ȳ_i, 1 − ȳ_i) ≤ ε

is cached with the verdict 1[ȳ_i ≥ ½]; the others are executed. Source: She & Lin 2026 (arXiv:2609.21267), section 3.2
and 4.2, equations 7 to 9. As a policy the cached items come last, in the base's order like the rest, so a run that goes
on past the others checks the cache (items without parameters of their own come last whatever the policy, `selection`
rule 2). `estimators.cached` fills the verdicts in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.protocol import Policy, View, share_over
from harness.adaptive.policies.traits import require_per_item

if TYPE_CHECKING:
    from harness.adaptive.responses import Responses

WINDOW_DAYS = 7
LEAST_TRIALS = 5


@dataclass(frozen=True, eq=False)
class Cache:
    """The window's `passes` and `trials` (N,) and the `verdict` (N,): 1 or 0 where it is reused, NaN where not."""

    passes: FloatArray
    trials: FloatArray
    verdict: FloatArray


def cache_of(
    history: Responses, day: str, epsilon: float, window_days: int = WINDOW_DAYS, least_trials: int = LEAST_TRIALS
) -> Cache:
    """The cache for runs of `day` (ISO): from the runs of the `window_days` days before it, that day left out.

    Raises
    ------
    EngineError
        If ε is outside [0, ½], the day is no ISO date, or a run of the history has none.
    """
    if not 0.0 <= epsilon <= 0.5:
        raise EngineError(f"ε = {epsilon}", place="epsilon", remedy="Give a number between 0 and 0.5")
    if len(history.dates) != len(history.run_ids):
        raise EngineError("the runs have no dates", place="history", remedy="Give one ISO date per run")
    today = _day(day)
    first = today - timedelta(days=window_days)
    recent = [first <= _day(text) < today for text in history.dates]
    passes = np.asarray(history.passes[recent].sum(axis=0), dtype=np.float64)
    trials = np.asarray(history.trials[recent].sum(axis=0), dtype=np.float64)
    rate = np.divide(passes, trials, out=np.full(len(trials), 0.5), where=trials > 0)
    stable = (trials >= max(least_trials, 1)) & (np.minimum(rate, 1.0 - rate) <= epsilon + 1e-12)
    return Cache(passes, trials, np.where(stable, (rate >= 0.5).astype(np.float64), np.nan))


@dataclass(frozen=True, eq=False)
class HistoryCache:
    """`base` with the items that have a `verdict` (N,) (1 or 0, NaN without) put last.

    Raises EngineError on another verdict, and at use if there is not one per item.
    """

    base: Policy
    verdict: FloatArray

    def __post_init__(self) -> None:
        require_per_item("verdict", self.verdict, lambda verdict: (verdict == 0) | (verdict == 1), "0 or 1")

    @property
    def name(self) -> str:
        """Such as "history_cache:random"."""
        return f"history_cache:{self.base.name}"

    @property
    def random_share(self) -> float:
        """The base's, see `share_over`; a draw reaches cached items as well."""
        return share_over(self.base)

    def values(self, view: View) -> FloatArray:
        """The base's values, (..., N), those of cached items lowered under all others."""
        require_per_item("verdict", self.verdict, length=len(view.bank))
        values = self.base.values(view)
        inside = np.where(view.pool, values, 0.0)
        reach = inside.max(axis=-1, keepdims=True) - inside.min(axis=-1, keepdims=True)
        return np.asarray(np.where(np.isnan(self.verdict), values, values - 1.0 - 2.0 * reach))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise EngineError(f"{text!r} is no date", place="history", remedy="Give every run an ISO date") from None
