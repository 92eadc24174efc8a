"""Back-testing on the history: which model, policy and random share would have estimated past agents best.

The agents of the history are cut into folds. Each fold is tested, outcome by outcome, by every candidate on a bank
calibrated on the other folds; an agent with several runs is in one fold with all of them, or it would be predicted from
itself. Errors are relative to the expected error of k items drawn at random, whose mean absolute value is, to the
normal approximation and with S² the variance of the run's N outcomes,

    E|ȳ_k − ȳ| = √(2/π) · √( S² (1 − k/N) / k )

Where a low-dimensional model is wrong, the adaptive choice can lose to it; then the candidates with a random share win
here, and `Backtest.at` says so for each number of tasks. The reference candidate, no random share on the model that
the held-out likelihood prefers, gives way only to one that beats it by more than 1.5 standard errors of the paired
difference over agents (Breiman et al. 1984, section 3.4.3): with few agents a table of many candidates always has a
lucky winner. Where few runs are tested, each is tested with several seeds, so that the luck of the draws is not taken
for merit.

The same runs give what model-based standard errors lack: `widening` is the factor that makes the 90 % interval cover
90 % of the past (split conformal: Vovk, Gammerman & Shafer 2005), smoothed over neighbouring numbers of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.bank import Bank
from harness.adaptive.errors import CalibrationError
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.keys import seeded_keys
from harness.adaptive.plan import Backtest, Plan, Row
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.policies import Hedged, Policy, policy_named
from harness.adaptive.responses import Responses

NOMINAL = 0.90
_NORMAL_90 = 1.6448536269514722
_NEIGHBOURHOOD = 1.6  # numbers of tasks within this factor of each other are judged together
_LEAST_WIDENING, _MOST_WIDENING = 1.0, 5.0  # under 1 is the luck of few runs: 40 of them gave .8 to 1.4 by chance

# Standard errors of the paired difference. One let luck choose among tens of candidates (SWE-bench, 19 runs: .63 of
# random's error at 100 tasks against .53); two would refuse hedges that BFCL needs.
_PROOF = 1.5
LEAST_AGENTS = 4
_ENOUGH_TRAJECTORIES = 60

Fit = Callable[[Responses], Bank]


@dataclass(frozen=True)
class BacktestSettings:
    """What is tried: `policies` by name, each hedged with every one of `shares`; the estimator's `model_errors`.

    `folds` of agents (all of them if there are fewer); at most `max_runs` runs are tested, drawn by `seed`. The
    `checkpoints` are numbers of tasks; by default fractions of the suite up to 60 %.
    """

    policies: tuple[str, ...] = ("pass_rate", "d_optimal")
    shares: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 1.0)
    model_errors: tuple[float, ...] = (0.0, 0.01, 0.02, 0.04)
    folds: int = 5
    max_runs: int = 200
    checkpoints: tuple[int, ...] = ()
    seed: int = 0


def backtest(
    responses: Responses,
    agents: Sequence[str],
    models: Mapping[str, Fit],
    settings: BacktestSettings | None = None,
    reference: str | None = None,
) -> Backtest:
    """Test every candidate on the history; deterministic given the arguments.

    Parameters
    ----------
    agents : (R,) whose run each is; runs of one agent are never on both sides of a fold.
    models : label → how to calibrate a bank of all items on a part of the history.
    reference : the label that needs no proof (the first one if None).

    Raises
    ------
    CalibrationError
        With fewer than 4 agents that have outcomes: there is nothing to test on.
    """
    settings = settings or BacktestSettings()
    tried = np.flatnonzero(responses.trials.sum(axis=1) > 0)
    names = sorted({agents[int(r)] for r in tried})
    if len(names) < LEAST_AGENTS:
        raise CalibrationError(
            f"{len(names)} agents with outcomes, at least {LEAST_AGENTS} are needed",
            place="back-test",
            remedy="Add runs of more agents, or calibrate without a back-test",
        )
    checkpoints = settings.checkpoints or default_checkpoints(len(responses.item_ids))
    parts = list(folds(agents, tried, settings))
    repeats = max(1, -(-_ENOUGH_TRAJECTORIES // sum(len(test) for _, test in parts)))
    tables = _Tables(checkpoints, settings, repeats)
    for train, test in parts:
        for label, fit in models.items():
            bank = fit(subset(responses, train))
            tables.test(label, bank, responses, test)
    return tables.result([agents[r] for r in tables.order], reference or next(iter(models)))


def default_checkpoints(n_items: int) -> tuple[int, ...]:
    """5, 10, 20, 40 and 60 % of the suite, and 25 tasks, at least 5 apart."""
    wanted = sorted({25, *(round(share * n_items) for share in (0.05, 0.1, 0.2, 0.4, 0.6))})
    kept: list[int] = []
    for k in wanted:
        if 5 <= k < n_items and (not kept or k >= kept[-1] + 5):
            kept.append(k)
    return tuple(kept) or (max(1, n_items // 2),)


def folds(agents: Sequence[str], tried: IntArray, settings: BacktestSettings) -> Iterator[tuple[IntArray, IntArray]]:
    """(train, test) rows for each fold, agents dealt out by seeded order; `max_runs` bounds the tested in all."""
    names = sorted({agents[int(r)] for r in tried})
    keys = dict(zip(names, seeded_keys(settings.seed, "fold", names).tolist(), strict=True))
    dealt = sorted(names, key=lambda name: keys[name])
    n_folds = min(settings.folds, len(dealt))
    number = {name: at % n_folds for at, name in enumerate(dealt)}
    fold = np.array([number[agents[int(r)]] for r in tried])
    run_keys = seeded_keys(settings.seed, "tested", [str(r) for r in tried])
    for n in range(n_folds):
        test = tried[fold == n]
        if len(test) > settings.max_runs // n_folds:
            chosen = np.argsort(run_keys[fold == n], kind="stable")[: max(1, settings.max_runs // n_folds)]
            test = np.sort(test[chosen])
        yield tried[fold != n], test


def subset(responses: Responses, rows: IntArray) -> Responses:
    """The history of these runs alone, all items kept."""
    return Responses(
        tuple(responses.run_ids[r] for r in rows),
        responses.item_ids,
        responses.passes[rows],
        responses.trials[rows],
        tuple(responses.dates[r] for r in rows) if responses.dates else (),
    )


def random_error(passes: FloatArray, trials: FloatArray, tasks: int) -> FloatArray:
    """Expected |error| of the mean of `tasks` items drawn at random, for each run (A,); 0 once all are drawn."""
    known = trials > 0
    n = known.sum(axis=1)
    rates = np.divide(passes, trials, out=np.zeros(passes.shape), where=known)
    mean = rates.sum(axis=1) / np.maximum(n, 1)
    spread = (np.where(known, rates - mean[:, None], 0.0) ** 2).sum(axis=1) / np.maximum(n - 1, 1)
    left = np.maximum(0.0, 1.0 - tasks / np.maximum(n, 1))
    return np.asarray(np.sqrt(2.0 / np.pi * spread * left / tasks))


class _Tables:
    """Absolute errors and standardised errors of every plan on every tested run, filled fold by fold."""

    def __init__(self, checkpoints: tuple[int, ...], settings: BacktestSettings, repeats: int) -> None:
        self._checkpoints, self._settings, self._repeats = checkpoints, settings, repeats
        self._errors: dict[Plan, list[FloatArray]] = {}
        self._scaled: dict[Plan, list[FloatArray]] = {}
        self._random: dict[str, list[FloatArray]] = {}
        self.order: list[int] = []
        self._first = ""

    def test(self, label: str, bank: Bank, responses: Responses, rows: IntArray) -> None:
        """Run every policy of the settings on these runs."""
        self._first = self._first or label
        rows = np.repeat(rows, self._repeats)
        passes, trials = responses.passes[rows], responses.trials[rows]
        checkpoints = tuple(k for k in self._checkpoints if k <= int((trials > 0).sum(axis=1).max()))
        expected = np.stack([random_error(passes, trials, k) for k in self._checkpoints], axis=1)
        self._random.setdefault(label, []).append(expected)
        if label == self._first:
            self.order += rows.tolist()
        seeds = tuple(self._settings.seed * 1_000_003 + at for at in range(len(rows)))
        for policy in candidates(self._settings):
            shared = policy.random_share == 0.0
            errors = self._settings.model_errors[:1] if shared else self._settings.model_errors
            estimators = tuple(replace(Hybrid(error), name=f"{error}") for error in errors)
            found = run_study(bank, passes, trials, Study(policy, estimators, checkpoints, seeds))
            for error in errors:
                plan = Plan(label, policy.name, error)
                off = np.zeros(expected.shape)
                scaled = np.zeros(expected.shape)
                at = len(checkpoints)
                off[:, :at] = np.abs(found.errors(f"{error}"))
                deviation = found.moments[f"{error}"].standard_error
                scaled[:, :at] = np.divide(off[:, :at], deviation, out=np.zeros(deviation.shape), where=deviation > 0)
                self._errors.setdefault(plan, []).append(off)
                self._scaled.setdefault(plan, []).append(scaled)

    def result(self, agents: Sequence[str], reference: str) -> Backtest:
        """The table and its winner."""
        expected = np.concatenate(self._random[self._first])
        names = sorted(set(agents))
        member = np.array([[agent == name for agent in agents] for name in names], dtype=np.float64)
        member /= member.sum(axis=1, keepdims=True)
        scale = np.maximum((member @ expected).mean(axis=0), 1e-12)
        by_agent = {plan: member @ np.concatenate(parts) / scale for plan, parts in self._errors.items()}
        near = self._near()
        rows: dict[Plan, list[Row]] = {}
        for plan, ratios in by_agent.items():
            scaled = np.concatenate(self._scaled[plan])
            factors = near @ np.log([conformal_factor(scaled[:, at]) for at in range(len(self._checkpoints))])
            rows[plan] = [
                Row(
                    plan=plan,
                    tasks=k,
                    mae=float(ratios[:, at].mean() * scale[at]),
                    random_mae=float(scale[at]),
                    ratio=float(ratios[:, at].mean()),
                    ratio_se=float(ratios[:, at].std(ddof=1) / np.sqrt(len(names))),
                    widening=float(np.exp(factors[at])),
                )
                for at, k in enumerate(self._checkpoints)
            ]
        smooth = {plan: ratios @ near.T for plan, ratios in by_agent.items()}
        chosen = _choose(smooth, reference, self._settings)
        return Backtest(
            rows=tuple(row for group in rows.values() for row in group),
            chosen=tuple(rows[plan][at] for at, plan in enumerate(chosen)),
            agents=len(names),
            runs=len(agents) // self._repeats,
        )

    def _near(self) -> FloatArray:
        """(K, K) rows of weights over the checkpoints near each one."""
        k = np.array(self._checkpoints, dtype=np.float64)
        within = np.abs(np.log(k[:, None] / k[None, :])) <= np.log(_NEIGHBOURHOOD) + 1e-9
        return np.asarray(within / within.sum(axis=1, keepdims=True))


def candidates(settings: BacktestSettings) -> tuple[Policy, ...]:
    """The policies to try: every base with every share below 1, and random sampling if the share 1 is among them."""
    bases = [policy_named(name) for name in settings.policies]
    hedged = [
        Hedged(base, share) if share else base for base in bases for share in sorted(settings.shares) if share < 1.0
    ]
    return (*hedged, policy_named("random")) if 1.0 in settings.shares else tuple(hedged)


def conformal_factor(scaled: FloatArray) -> float:
    """By how much to widen: the ⌈0.9 (n+1)⌉-th smallest |error| / standard error over that of the normal, in bounds.

    `scaled` (n,) ≥ 0. Entries of 0 (an exact answer) count.
    """
    n = len(scaled)
    rank = min(n, int(np.ceil(NOMINAL * (n + 1))))
    found = float(np.sort(scaled)[rank - 1]) / _NORMAL_90
    return min(max(found, _LEAST_WIDENING), _MOST_WIDENING)


def _choose(smooth: dict[Plan, FloatArray], reference: str, settings: BacktestSettings) -> list[Plan]:
    """One plan per checkpoint, all of the model that does best over them."""
    base = candidates(settings)[0].name
    labels = list(dict.fromkeys(plan.model for plan in smooth))
    best: dict[str, list[Plan]] = {}
    for label in labels:
        own = {plan: ratios for plan, ratios in smooth.items() if plan.model == label}
        start = next(plan for plan in own if plan.policy == base)
        n_checkpoints = own[start].shape[1]
        best[label] = [_best_at(own, start, at) for at in range(n_checkpoints)]

    def overall(label: str) -> FloatArray:
        return np.asarray(np.mean([smooth[plan][:, at] for at, plan in enumerate(best[label])], axis=0))

    winner = reference
    for label in labels:
        if better(overall(label), overall(winner)):
            winner = label
    return best[winner]


def _best_at(own: dict[Plan, FloatArray], start: Plan, at: int) -> Plan:
    ranked = sorted(own, key=lambda plan: float(own[plan][:, at].mean()))
    return ranked[0] if better(own[ranked[0]][:, at], own[start][:, at]) else start


def better(new: FloatArray, old: FloatArray) -> bool:
    """Whether `new` is under `old`, (agents,) each, by more than 1.5 standard errors of the mean difference."""
    gain = old - new
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > _PROOF * error)
