"""Many agents tested side by side on items whose outcomes are known: what a policy would have cost and given.

The engine's own steps (`selection`, `ability`, the estimators) on arrays with a leading axis of agents, so that a study
of hundreds of agents costs a few matrix products per step. `tests/adaptive/test_trajectories.py` holds that it makes
the choices the engine makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import BoolArray, FloatArray, IntArray, KeyArray, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.protocol import Estimator, Moments, allowed
from harness.adaptive.evidence import Evidence
from harness.adaptive.policies.protocol import Policy, View
from harness.adaptive.selection import Lot, Offer, pick, preferred
from harness.adaptive.state import downdate

STUDY_TOLERANCE = 1e-8  # of θ̂ in a study: far under what could turn a choice that is no tie


@dataclass(frozen=True, eq=False)
class Study:
    """How the runs are made: `policy`, `estimators`, rising `checkpoints` (numbers of executed items), one seed per
    agent (or one for all), `in_flight` items at a time (1: each outcome is known before the next choice).
    """

    policy: Policy
    estimators: tuple[Estimator, ...]
    checkpoints: tuple[int, ...]
    seeds: tuple[int, ...] = (0,)
    in_flight: int = 1


@dataclass(frozen=True, eq=False)
class Trajectories:
    """What A agents' runs gave at K checkpoints.

    `moments` maps an estimator's name to its values and standard errors, (A, K) each, fractions of 1. `items` (A, k)
    are the choices in order, −1 once an agent had no item left. `theta` (A, K, d). `truth` (A,) is the pass rate over
    all the agent's known outcomes.
    """

    checkpoints: tuple[int, ...]
    moments: dict[str, Moments]
    items: IntArray
    theta: FloatArray
    truth: FloatArray

    def errors(self, estimator: str) -> FloatArray:
        """Estimate minus truth, (A, K), fractions of 1."""
        return np.asarray(self.moments[estimator].value - self.truth[:, None])


def run_study(bank: Bank, passes: FloatArray, trials: FloatArray, study: Study) -> Trajectories:
    """Run `study` on A agents whose outcomes are `passes` in `trials` (A, N); a cell without trials is unavailable.

    Raises
    ------
    EngineError
        On no checkpoint, checkpoints that do not rise, or seeds that are neither one nor one per agent.
    """
    _require_sound(study, len(passes))
    table = _Table(bank, passes, trials, study)
    found: dict[str, list[Moments]] = {estimator.name: [] for estimator in study.estimators}
    thetas = []
    waiting: list[IntArray] = []
    last = study.checkpoints[-1]
    while table.learnt < last:
        if table.chosen < last:
            waiting.append(table.choose(waiting))
        if len(waiting) < study.in_flight and table.chosen < last:
            continue
        table.learn(waiting.pop(0))
        if table.learnt in study.checkpoints:
            evidence = table.evidence()
            thetas.append(table.theta)
            least, most = allowed(evidence)
            for estimator in study.estimators:
                moments = estimator.moments(evidence)
                found[estimator.name].append(Moments(np.clip(moments.value, least, most), moments.standard_error))
    rates = np.divide(passes, trials, out=np.zeros(passes.shape), where=trials > 0)
    return Trajectories(
        checkpoints=study.checkpoints,
        moments={
            name: Moments(
                np.stack([at.value for at in rows], axis=1), np.stack([at.standard_error for at in rows], axis=1)
            )
            for name, rows in found.items()
        },
        items=table.items,
        theta=np.stack(thetas, axis=1),
        truth=np.asarray(rates.sum(axis=1) / np.maximum((trials > 0).sum(axis=1), 1)),
    )


def _require_sound(study: Study, n_agents: int) -> None:
    rising = all(low < high for low, high in zip((0, *study.checkpoints), study.checkpoints, strict=False))
    if not study.checkpoints or not rising or len(study.seeds) not in {1, n_agents} or study.in_flight < 1:
        raise EngineError(
            f"checkpoints {study.checkpoints}, {len(study.seeds)} seeds for {n_agents} agents,"
            f" {study.in_flight} in flight",
            place="Study",
            remedy="Give rising checkpoints above 0, one seed or one per agent, and at least 1 in flight",
        )


class _Table:
    """The states of all agents, as arrays that fill by one column per step."""

    def __init__(self, bank: Bank, passes: FloatArray, trials: FloatArray, study: Study) -> None:
        n_agents, last = len(passes), study.checkpoints[-1]
        self._bank, self._policy = bank, study.policy
        self._passes, self._trials = passes, trials
        self._rows = np.arange(n_agents)
        self._lots = [Lot.of(seed, bank.item_ids) for seed in study.seeds]
        self._ties = self._per_agent([lot.ties for lot in self._lots])
        self._order = self._per_agent([lot.order for lot in self._lots])
        self._draws = self._all_draws(last)
        self._counted = trials > 0
        self._open = self._counted.copy()
        self._rest = self._counted.copy()
        self.theta = np.tile(bank.prior_mean, (n_agents, 1))
        self._covariance = np.tile(bank.prior_covariance, (n_agents, 1, 1))
        self.items = np.full((n_agents, last), -1, dtype=np.int64)
        self._probability = np.full((n_agents, last), np.nan)
        self._pool = np.zeros((n_agents, last), dtype=np.int64)
        self._random = np.zeros((n_agents, last), dtype=np.bool_)
        self._loadings = np.zeros((n_agents, last, bank.d))
        self._offsets = np.zeros((n_agents, last))
        self._seen_passes = np.zeros((n_agents, last))
        self._seen_trials = np.zeros((n_agents, last))
        self.chosen = 0
        self.learnt = 0

    def choose(self, waiting: Sequence[IntArray]) -> IntArray:
        """The next item of every agent, (A,); −1 for an agent that has none."""
        bank, at = self._bank, self.chosen
        probability = bank.probability(self.theta)
        pool = preferred(self._open, bank.calibrated)
        covariance = self._planning(probability, waiting)
        view = View(
            bank=bank,
            theta=self.theta,
            covariance=covariance,
            preposterior=self._covariance - covariance if waiting else None,
            probability=probability,
            pool=pool,
            rest=self._rest & self._open,
            taken=self._counted & ~self._open,
            chosen=np.full(len(self._rows), at, dtype=np.int64),
            keys=self._ties,
        )
        offer = Offer(self._policy.values(view), pool, self._open, self._ties, self._order)
        is_draw = self._draws[:, at]
        picked = pick(offer, is_draw, self._policy.random_share)
        self.items[:, at] = np.where(self._open.any(axis=1), picked.item, -1)
        self._probability[:, at] = picked.probability
        self._pool[:, at] = picked.open
        self._random[:, at] = is_draw
        self._open[self._rows, picked.item] = False
        self.chosen += 1
        return np.asarray(self.items[:, at])

    def learn(self, item: IntArray) -> None:
        """Take in the outcomes of `item` (A,)."""
        at, rows, some = self.learnt, self._rows, item >= 0
        loading, offset = self._bank.alpha[item], self._bank.beta[item]
        self._loadings[:, at], self._offsets[:, at] = loading, offset
        trials = np.where(some, self._trials[rows, item], 0.0)
        passes = np.where(some, self._passes[rows, item], 0.0)
        self._seen_trials[:, at], self._seen_passes[:, at] = trials, passes
        self._rest[rows[some], item[some]] = False
        self.learnt += 1
        p = sigmoid((loading * self.theta).sum(axis=1) - offset)
        predicted = downdate(self._covariance, loading, trials * p * (1.0 - p))
        guess = self.theta + (predicted @ loading[..., None])[..., 0] * (passes - trials * p)[:, None]
        seen = self._outcomes()
        self.theta = maximise(guess, seen, STUDY_TOLERANCE)
        inverse = np.linalg.inv(seen.information(self.theta))
        self._covariance = (inverse + np.swapaxes(inverse, 1, 2)) / 2

    def evidence(self) -> Evidence:
        """What the estimators read now."""
        k = self.learnt
        return Evidence(
            bank=self._bank,
            theta=self.theta,
            covariance=self._covariance,
            items=np.maximum(self.items[:, :k], 0),
            passes=self._seen_passes[:, :k],
            trials=self._seen_trials[:, :k],
            probability=self._probability[:, :k],
            pool=self._pool[:, :k],
            random=self._random[:, :k],
            rest=self._rest,
            counted=self._counted,
        )

    def _planning(self, probability: FloatArray, waiting: Sequence[IntArray]) -> FloatArray:
        covariance = self._covariance
        if not waiting:
            return covariance
        for item in np.sort(np.stack(waiting, axis=1), axis=1).T:
            p = probability[self._rows, item]
            covariance = downdate(covariance, self._bank.alpha[item], np.where(item >= 0, p * (1.0 - p), 0.0))
        return covariance

    def _all_draws(self, last: int) -> BoolArray:
        """Whether each step of each agent is a draw, (A, last), told beforehand: they depend on nothing observed."""
        steps, share = np.arange(last, dtype=np.int64), self._policy.random_share
        found = np.stack([lot.is_draw(steps, share) for lot in self._lots])
        return np.broadcast_to(found, (len(self._rows), last))

    def _outcomes(self) -> Outcomes:
        k = self.learnt
        return Outcomes(
            loadings=self._loadings[:, :k],
            offsets=self._offsets[:, :k],
            passes=self._seen_passes[:, :k],
            trials=self._seen_trials[:, :k],
            mean=self._bank.prior_mean,
            precision=self._bank.prior_precision,
        )

    def _per_agent(self, keys: Sequence[KeyArray]) -> KeyArray:
        return np.broadcast_to(np.stack(keys), (len(self._rows), len(self._bank)))
