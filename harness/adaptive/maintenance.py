"""When a bank should no longer be trusted: pure functions from recent runs to findings that a scheduler can act on.

*Range.* A bank knows the abilities it was calibrated on, θ ~ N(m, C). For a new run D² = (θ̂ − m)ᵀ C⁻¹ (θ̂ − m) is about
χ² with d degrees of freedom if it comes from there (a little under, since θ̂ is shrunken: the tail is never too small).
A small tail, or a suite most of whose items are as good as settled, is the edge; a tiny one is a jump outside it.

*Items.* For each item Page sums over the runs that had it, for having become easier or harder by δ logits:

    S_δ ← max(0, S_δ + y log(p₁/p₀) + (n − y) log((1−p₁)/(1−p₀))),      p₁ = σ(logit p₀ + δ),

y passes in n trials, p₀ the averaged prediction given the run's own θ̂. While the bank holds, e^S is at most the sum
of R + 1 likelihood ratios, one per restart, each of expectation 1: so mean_δ e^{S_δ} / (R + 1) is an e-value, after
any number of runs. With 2N of them (two directions) the e-BH rule flags the m largest, m the last with e_(m) ≥ 2N /
(α m), and the expected share of false ones among the flagged is at most α; with no drift anywhere that is the chance
of any finding. A shift of all items alike is a change of ability and is no drift of items.

*Full runs.* Now and then a suite is run whole and compared with what the part of it had said: Spearman's ρ over the
runs under 0.75 asks for a new selection (the trigger of the mid-range protocol), a mean error that rises above its
reference by more than chance for recalibration. |error| of a normal has a standard deviation of 0.756 times its mean.

Sources: Page 1954, "Continuous inspection schemes"; Shin, Ramdas & Rinaldo 2023, "E-detectors"; Wang & Ramdas 2022,
"False discovery rate control with e-values".
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from harness.adaptive.arrays import FloatArray, IntArray, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.decision.baseline import evidence_of
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.estimators.posterior_predictive import averaged

EDGE_TAIL, JUMP_TAIL = 0.02, 0.001
SETTLED, INFORMATIVE_SHARE = 0.05, 0.10
DRIFT_LOGITS = (1.5, 3.5, -1.5, -3.5)  # easier, harder: slow drift, and a task that broke
BANK_DRIFT_SHARE = 0.05  # of the items: beyond it the bank is at fault and not the items
RANK_TRIGGER = 0.75
FEWEST_FULL_RUNS = 5
HALF_NORMAL_SPREAD = math.sqrt(math.pi / 2 - 1)
WARNING_Z, ALARM_Z = 1.645, 3.0


class FindingKind(Enum):
    """What was found."""

    EDGE_OF_RANGE = "edge_of_range"
    ABILITY_JUMP = "ability_jump"
    ITEM_DRIFT = "item_drift"
    BANK_DRIFT = "bank_drift"
    RANKS_DISAGREE = "ranks_disagree"
    ERROR_RISING = "error_rising"
    FULL_RUN_DUE = "full_run_due"


class Severity(Enum):
    """NOTICE: worth knowing. WARNING: act soon. ALARM: do not rely on estimates until it is dealt with."""

    NOTICE = "notice"
    WARNING = "warning"
    ALARM = "alarm"


@dataclass(frozen=True)
class Finding:
    """`subject` is what it is about (an item, or ""), `numbers` the evidence, `sentence` one line for people, `remedy`
    what to do.
    """

    kind: FindingKind
    severity: Severity
    subject: str
    numbers: dict[str, float]
    sentence: str
    remedy: str

    def as_event(self) -> dict[str, Any]:
        """Plain, JSON-able values."""
        return {**asdict(self), "kind": self.kind.value, "severity": self.severity.value}


def ability_range(bank: Bank, theta: FloatArray, run: str = "", covariance: FloatArray | float = 0.0) -> Finding | None:
    """Whether a run's θ̂ (d,), with its `covariance` (d, d), is outside, or at the edge of, what the bank was calibrated
    on; None if it is inside.
    """
    from scipy.special import chdtrc

    distance = bank.past_distance(theta, covariance)
    tail = float(chdtrc(bank.d, distance**2))
    p = bank.probability(np.asarray(theta))
    informative = float(((p > SETTLED) & (p < 1.0 - SETTLED)).mean())
    numbers = {"distance": distance, "tail": tail, "informative_share": informative}
    where = f"an ability {distance:.1f} standard deviations from the mean of the calibrated runs"
    if tail < JUMP_TAIL:
        return Finding(
            FindingKind.ABILITY_JUMP,
            Severity.ALARM,
            run,
            numbers,
            f"{where}: 1 run in {1 / max(tail, 1e-12):.0f} like them would be that far",
            "Run the whole suite once with this agent and recalibrate with it",
        )
    if tail >= EDGE_TAIL and informative >= INFORMATIVE_SHARE:
        return None
    return Finding(
        FindingKind.EDGE_OF_RANGE,
        Severity.NOTICE if informative >= INFORMATIVE_SHARE else Severity.WARNING,
        run,
        numbers,
        f"{where}; {informative:.0%} of the items are neither nearly sure to pass nor nearly sure to fail",
        "Recalibrate with runs of such agents"
        if informative >= INFORMATIVE_SHARE
        else "Add items of the right difficulty, then recalibrate",
    )


@dataclass(frozen=True, eq=False)
class DriftState:
    """`sums` (4, N): the Page sums, one row per δ of `DRIFT_LOGITS`; `since` (4, N): the run since which each is above
    0; `residual`, `variance` (N,): Σ (y − np₀) and Σ np₀(1−p₀); `runs`: how many were taken in. Begin with `start`.
    """

    sums: FloatArray
    since: IntArray
    residual: FloatArray
    variance: FloatArray
    runs: int

    @classmethod
    def start(cls, n_items: int) -> DriftState:
        """Before the first run."""
        shape = (len(DRIFT_LOGITS), n_items)
        return cls(np.zeros(shape), np.zeros(shape, dtype=np.int64), np.zeros(n_items), np.zeros(n_items), 0)

    def advance(self, bank: Bank, passes: FloatArray, trials: FloatArray) -> DriftState:
        """The state after one more run with these counts (N,), 0 trials where an item did not run. O(N d²)."""
        q = averaged(evidence_of(bank, passes, trials))[1]
        p = np.clip(q, 1e-9, 1.0 - 1e-9)
        shifted = sigmoid(np.log(p / (1.0 - p)) + np.array(DRIFT_LOGITS)[:, None])
        gain = passes * np.log(shifted / p) + (trials - passes) * np.log((1.0 - shifted) / (1.0 - p))
        return replace(
            self,
            sums=np.maximum(0.0, self.sums + gain),
            since=np.where(self.sums > 0, self.since, self.runs),
            residual=self.residual + passes - trials * p,
            variance=self.variance + trials * p * (1.0 - p),
            runs=self.runs + 1,
        )

    def findings(self, bank: Bank, alpha: float = 0.05) -> tuple[Finding, ...]:
        """Drifted items, the clearest first; led by a finding about the bank if they are more than 1 in 20.

        `alpha`: the expected share of false ones. Raises AdaptiveError unless it is in (0, 1).
        """
        if not 0.0 < alpha < 1.0:
            raise AdaptiveError(f"alpha {alpha}", place="findings", remedy="Give a rate between 0 and 1, such as 0.05")
        n = len(bank)
        half = len(DRIFT_LOGITS) // 2
        log_e = np.stack([np.logaddexp.reduce(part, axis=0) for part in (self.sums[:half], self.sums[half:])])
        log_e -= math.log(half * (self.runs + 1))
        order = np.argsort(-log_e, axis=None, kind="stable")
        enough = log_e.ravel()[order] >= math.log(2 * n / alpha) - np.log(np.arange(1, 2 * n + 1))
        count = int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0
        items = tuple(self._finding(bank, *divmod(int(at), n), float(log_e.ravel()[at])) for at in order[:count])
        share = len({finding.subject for finding in items}) / n
        if share <= BANK_DRIFT_SHARE:
            return items
        numbers = {"share": share, "runs": float(self.runs)}
        sentence = f"{share:.0%} of {n} items have drifted over {self.runs} runs"
        whole = Finding(FindingKind.BANK_DRIFT, Severity.ALARM, "", numbers, sentence, "Recalibrate on recent runs")
        return (whole, *items)

    def _finding(self, bank: Bank, direction: int, at: int, log_e: float) -> Finding:
        half = len(DRIFT_LOGITS) // 2
        rows = slice(half * direction, half * direction + half)
        since = int(self.since[rows, at][np.argmax(self.sums[rows, at])])
        z = float(self.residual[at] / math.sqrt(max(self.variance[at], 1e-12)))
        item, changed = bank.item_ids[at], "harder" if direction else "easier"
        return Finding(
            FindingKind.ITEM_DRIFT,
            Severity.WARNING,
            item,
            {"log_e_value": log_e, "residual_z": z, "since_run": float(since), "runs": float(self.runs)},
            f"{item} has become {changed} than the bank says, since run {since + 1} of {self.runs}",
            "Look whether the task, its image or its grader changed; then recalibrate",
        )


def item_drift(bank: Bank, passes: FloatArray, trials: FloatArray, alpha: float = 0.05) -> tuple[Finding, ...]:
    """Drifted items from the counts of R runs in order of time, (R, N) each. See `DriftState` to go run by run."""
    state = DriftState.start(len(bank))
    for won, tried in zip(passes, trials, strict=True):
        state = state.advance(bank, np.asarray(won, dtype=np.float64), np.asarray(tried, dtype=np.float64))
    return state.findings(bank, alpha)


def full_run_check(estimates: ArrayLike, truths: ArrayLike, reference_mae: float | None = None) -> tuple[Finding, ...]:
    """What full runs, oldest first, say of the estimates that parts of them had given; all in fractions of 1.

    `reference_mae` is the mean absolute error that the back-test promised; without one, the older half is the
    reference for the newer. Under 5 full runs nothing is said of ranks, under 5 (10 without reference) nothing of
    errors. Ranks without spread have no ρ and give no finding.

    Raises
    ------
    AdaptiveError
        On lengths that differ, numbers that are not finite, or a reference of 0 or less.
    """
    predicted, real = np.asarray(estimates, dtype=np.float64), np.asarray(truths, dtype=np.float64)
    sound = predicted.shape == real.shape and predicted.ndim == 1 and np.isfinite([*predicted, *real]).all()
    if not sound or (reference_mae is not None and not reference_mae > 0):
        raise AdaptiveError(
            f"{predicted.size} estimates, {real.size} full runs, reference {reference_mae}",
            place="full_run_check",
            remedy="Give one finite estimate and truth per full run, and a reference error above 0 or None",
        )
    found = [_ranks(predicted, real), _errors(np.abs(predicted - real), reference_mae)]
    return tuple(finding for finding in found if finding is not None)


def full_run_due(runs_since: int, every: int = 10) -> Finding | None:
    """A notice once `every` runs went by without a full one. Raises AdaptiveError on a negative count or every < 1."""
    if runs_since < 0 or every < 1:
        raise AdaptiveError(f"{runs_since}, {every}", place="full_run_due", remedy="Give counts of at least 0 and 1")
    if runs_since < every:
        return None
    return Finding(
        FindingKind.FULL_RUN_DUE,
        Severity.NOTICE,
        "",
        {"runs_since": float(runs_since), "every": float(every)},
        f"{runs_since} runs since the last full one",
        "Run the whole suite with the next agent and compare",
    )


def _ranks(predicted: FloatArray, real: FloatArray) -> Finding | None:
    n = len(real)
    if n < FEWEST_FULL_RUNS or np.ptp(predicted) == 0 or np.ptp(real) == 0:
        return None
    from scipy.stats import rankdata

    rho = float(np.corrcoef(rankdata(predicted), rankdata(real))[0, 1])
    if rho >= RANK_TRIGGER:
        return None
    # Fisher's transform with the variance of Fieller, Hartley & Pearson 1957 for Spearman's ρ.
    upper = math.tanh(math.atanh(max(rho, -1 + 1e-9)) + WARNING_Z * math.sqrt(1.06 / max(n - 3, 1)))
    return Finding(
        FindingKind.RANKS_DISAGREE,
        Severity.ALARM if upper < RANK_TRIGGER else Severity.WARNING,
        "",
        {"spearman": rho, "upper_95": upper, "trigger": RANK_TRIGGER, "runs": float(n)},
        f"Spearman's ρ between estimates and {n} full runs is {rho:.2f}, under {RANK_TRIGGER}",
        "Recalibrate on recent runs and select tasks anew",
    )


def _errors(errors: FloatArray, reference_mae: float | None) -> Finding | None:
    older = errors[: len(errors) // 2] if reference_mae is None else np.zeros(0)
    recent = errors[len(older) :]
    if len(recent) < FEWEST_FULL_RUNS or (reference_mae is None and len(older) < FEWEST_FULL_RUNS):
        return None
    expected = float(older.mean()) if reference_mae is None else reference_mae
    terms = 1.0 / len(recent) + (1.0 / len(older) if len(older) else 0.0)
    noise = HALF_NORMAL_SPREAD * math.sqrt(terms)
    rise = float(recent.mean()) / expected if expected > 0 else math.inf
    z = math.log(rise) / noise if 0 < rise < math.inf else math.copysign(math.inf, rise - 1.0)
    if not recent.mean() > 0 or z < WARNING_Z:
        return None
    return Finding(
        FindingKind.ERROR_RISING,
        Severity.ALARM if z >= ALARM_Z else Severity.WARNING,
        "",
        {"recent_mae": float(recent.mean()), "reference_mae": expected, "z": z, "runs": float(len(recent))},
        f"mean error {100 * recent.mean():.2f} points over {len(recent)} full runs, {100 * expected:.2f} before",
        "Recalibrate on recent runs",
    )
