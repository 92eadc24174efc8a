"""What a candidate is compared with: a full run, a partial run, or a number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import BoolArray, FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.decision.paired import Side
from harness.adaptive.errors import EngineError
from harness.adaptive.evidence import Evidence

_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Baseline:
    """Build one with `of_outcomes`, `of_run` or `of_rate`. `known` is a `Side`, or the number."""

    known: Side | float

    @classmethod
    def of_rate(cls, rate: float) -> Baseline:
        """A pass rate that counts as exact. Raises EngineError unless it is in [0, 1]."""
        if not 0.0 <= rate <= 1.0:
            raise EngineError(
                f"{rate} is no pass rate", place="baseline", remedy="Give a fraction of 1, such as 0.55 for 55 %"
            )
        return cls(float(rate))

    @classmethod
    def of_run(cls, evidence: Evidence) -> Baseline:
        """A run that the adaptive engine made, complete or not."""
        return cls(Side(evidence))

    @classmethod
    def of_outcomes(
        cls, bank: Bank, outcomes: Mapping[str, bool | tuple[int, int]], suite: Iterable[str] | None = None
    ) -> Baseline:
        """Outcomes by item id, True, False or (passes, trials); `suite` names the items that the baseline was to run
        (all of the bank unless given). Items that the bank does not hold cannot be compared and are left out.

        Raises
        ------
        EngineError
            On impossible counts, or if no item is left.
        """
        passes, trials = np.zeros(len(bank)), np.zeros(len(bank))
        for item, outcome in outcomes.items():
            won, tried = outcome if isinstance(outcome, tuple) else (int(outcome), 1)
            if not 0 <= won <= tried or tried < 1:
                raise EngineError(
                    f"{won} passes in {tried} trials",
                    place=f"baseline, item {item!r}",
                    remedy="Give 0 ≤ passes ≤ trials ≥ 1",
                )
            if item in bank.index:
                passes[bank.index[item]], trials[bank.index[item]] = won, tried
        counted = np.ones(len(bank), dtype=np.bool_)
        if suite is not None:
            named = set(suite)
            counted = np.array([item in named for item in bank.item_ids], dtype=np.bool_) | (trials > 0)
        if not (trials > 0).any():
            raise EngineError(
                "no outcome on any item of the bank", place="baseline", remedy="Give a run of the same suite, or a rate"
            )
        return cls(Side(evidence_of(bank, passes, trials, counted)))

    def __repr__(self) -> str:
        """Short, and different for different outcomes: it goes into the record of a run."""
        if not isinstance(self.known, Side):
            return f"Baseline(rate={self.known!r})"
        side = self.known
        digest = hashlib.sha256()
        for array in (side.ran, side.evidence.counted, side.rates):
            digest.update(np.ascontiguousarray(array).tobytes())
        ran, of = int(side.ran.sum()), int(side.evidence.counted.sum())
        return f"Baseline(outcomes={ran} of {of}, sha256={digest.hexdigest()[:12]})"


def evidence_of(bank: Bank, passes: FloatArray, trials: FloatArray, counted: BoolArray | None = None) -> Evidence:
    """Evidence from tables `passes` and `trials` (..., N), 0 trials where there is no outcome; how the items came to be
    chosen is not known. `counted` (..., N) is the population, all items unless given.
    """
    leading = passes.shape[:-1]
    seen = Outcomes(
        loadings=np.broadcast_to(bank.alpha, (*leading, *bank.alpha.shape)),
        offsets=np.broadcast_to(bank.beta, passes.shape),
        passes=passes,
        trials=trials,
        mean=bank.prior_mean,
        precision=bank.prior_precision,
    )
    theta = maximise(np.broadcast_to(bank.prior_mean, (*leading, bank.d)), seen, _TOLERANCE)
    inverse = np.linalg.inv(seen.information(theta))
    population = np.ones(passes.shape, dtype=np.bool_) if counted is None else counted
    return Evidence(
        bank=bank,
        theta=theta,
        covariance=(inverse + np.swapaxes(inverse, -1, -2)) / 2,
        items=np.broadcast_to(np.arange(len(bank)), passes.shape),
        passes=passes,
        trials=trials,
        probability=np.full(passes.shape, np.nan),
        pool=np.zeros(passes.shape, dtype=np.int64),
        random=np.zeros(passes.shape, dtype=np.bool_),
        rest=population & (trials == 0),
        counted=population,
    )
