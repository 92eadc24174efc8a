"""The adaptive engine: which item next, what is known so far, when to stop.

A thin shell around an immutable `AbilityState`. `next` is a pure function of bank, seed, policy, the events
so far and the list of items in flight: asking twice gives the same answer and changes nothing. Only
`observe`, `withdraw` and `reinstate` do, each is an event, and `replay` of the events on a new engine of the
same bank and settings gives every later answer to the same bits.

    engine = AdaptiveEngine(bank, EngineSettings(seed=7, stops=(TasksStop(200),)))
    while isinstance(step := engine.next(in_flight), Choice): …start step.item…
    engine.observe(item, passed)
    engine.estimate()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.errors import EngineError, StateError, UnconvergedBankError
from harness.adaptive.estimators import Estimate, Estimator, Hybrid
from harness.adaptive.estimators.protocol import estimate_of, widened
from harness.adaptive.evidence import Draw
from harness.adaptive.policies import DOptimal, Policy
from harness.adaptive.selection import Choice, Lot, select
from harness.adaptive.state import NOT_KNOWN, AbilityState, Spent, Withdrawal
from harness.adaptive.stops import EndReason, Stop, StopRule, StopView, TasksStop

DEFAULT_TASKS = 200


@dataclass(frozen=True)
class EngineSettings:
    """`stops` are asked in order, the first with a reason wins; `level` is that of the interval; `top`
    candidates go into a choice.

    `widening`: (executed tasks, factor) pairs by tasks: what the standard error is multiplied by, between them by
    linear interpolation, beyond them as at the nearest (`Backtest.widening`); none: 1.
    `allow_unconverged` uses a bank whose fit did not converge, which is otherwise refused.
    """

    policy: Policy = field(default_factory=DOptimal)
    estimator: Estimator = field(default_factory=Hybrid)
    stops: tuple[StopRule, ...] = (TasksStop(DEFAULT_TASKS),)
    seed: int = 0
    level: float = 0.95
    widening: tuple[tuple[int, float], ...] = ()
    top: int = 5
    allow_unconverged: bool = False


class AdaptiveEngine:
    """One agent's adaptive run over one bank. Items are named by id.

    Raises
    ------
    UnconvergedBankError
        If the bank's fit did not converge and the settings do not allow that.
    """

    def __init__(self, bank: Bank, settings: EngineSettings | None = None) -> None:
        self._settings = settings or EngineSettings()
        convergence = bank.provenance.convergence
        if not convergence.converged and not self._settings.allow_unconverged:
            raise UnconvergedBankError(
                f"the fit stopped after {convergence.iterations} iterations with gradient"
                f" {convergence.max_gradient:.2g} (tolerance {convergence.tolerance:.2g})",
                place=f"bank {bank.digest[:12]}",
                remedy="Calibrate with more iterations, or set allow_unconverged and say so",
            )
        self._bank = bank
        self._lot = Lot.of(self._settings.seed, bank.item_ids)
        self._draws: dict[str, Draw] = {}
        self._state = AbilityState.start(bank)
        self._events: list[dict[str, Any]] = []

    @property
    def bank(self) -> Bank:
        """The bank it was made with."""
        return self._bank

    @property
    def settings(self) -> EngineSettings:
        """The settings it was made with."""
        return self._settings

    @property
    def state(self) -> AbilityState:
        """The present state: an immutable value that stays as it is when the engine moves on."""
        return self._state

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """Copies of everything that changed the state, in order, as plain JSON-able values for `replay`."""
        return tuple(dict(event) for event in self._events)

    def describe(self) -> dict[str, Any]:
        """What `replay` needs beside the events, and a reader: bank digest and provenance, policy, estimator,
        seed, stops.
        """
        return {
            "bank": self._bank.digest,
            "provenance": self._bank.provenance.as_dict(),
            "policy": self._settings.policy.name,
            "estimator": self._settings.estimator.name,
            "seed": self._settings.seed,
            "level": self._settings.level,
            "widening": [list(pair) for pair in self._settings.widening],
            "stops": [repr(rule) for rule in self._settings.stops],
        }

    def next(self, pending: Sequence[str] = ()) -> Choice | Stop:
        """The next item, given those in flight (in any order), or why there is none.

        Raises
        ------
        BankError
            If a pending item is not in the bank.
        StateError
            If one is listed twice, has an outcome already or was withdrawn.
        """
        in_flight = self._in_flight(pending)
        found = self._stop(in_flight)
        if found is not None:
            reason, detail = found
            withdrawn = len(self._state.withdrawn)
            return Stop(reason, detail, len(self._state.items), len(in_flight), withdrawn)
        choice = select(self._settings.policy, self._state, in_flight, self._lot, self._settings.top)
        self.recall(choice.item, choice.draw)
        return choice

    def recall(self, item: str, draw: Draw) -> None:
        """Remember how an item was chosen until its outcome comes. `next` does so itself; a runner that resumes tells a
        new engine of the choices whose items are still in flight. It changes no answer but that of the design-based
        estimators.
        """
        self._draws[item] = draw

    def observe(self, item: str, passed: bool | int, trials: int = 1, spent: Spent = NOT_KNOWN) -> None:
        """Take in an outcome: passed or not, or the number of passes in `trials` attempts, and what they took together,
        where that is known. The same outcome told again is ignored.

        Raises
        ------
        BankError
            On an unknown item.
        StateError
            On a second, different outcome, a withdrawn item, or impossible counts.
        """
        draw = self._draws.get(item)
        state = self._state.observe(self._position(item), int(passed), trials, draw, spent)
        if state is self._state:
            return
        self._state = state
        event: dict[str, Any] = {"kind": "observe", "item": item, "passed": passed if trials != 1 else bool(passed)}
        if trials != 1:
            event["trials"] = trials
        if draw is not None:
            event["draw"] = draw.as_list()
        self._events.append({**event, **spent.as_event()})

    def withdraw(self, item: str, kind: Withdrawal | str, reason: str = "", spent: Spent = NOT_KNOWN) -> None:
        """Take an item out of the pool: "unavailable" (leaves the estimated population too) or "ungraded"
        (stays in it). What its attempt took counts all the same.

        Raises BankError on an unknown item, EngineError on another kind, StateError if it has an outcome or
        was withdrawn before.
        """
        meant = _withdrawal(kind)
        self._state = self._state.withdraw(self._position(item), meant, reason, spent)
        event = {"kind": "withdraw", "item": item, "as": meant.value, "reason": reason}
        self._events.append({**event, **spent.as_event()})

    def reinstate(self, item: str) -> None:
        """Put a withdrawn item back. Raises BankError on an unknown item, StateError if it was not withdrawn."""
        self._state = self._state.reinstate(self._position(item))
        self._events.append({"kind": "reinstate", "item": item})

    def estimate(self) -> Estimate:
        """The estimate from the outcomes so far; finite before the first (see `Estimate`).

        Items withdrawn as "ungraded" stay in the population. Their outcomes may be missing for a reason that has to do
        with them, so the interval is widened to what it would be had each failed, and had each passed; the value
        predicts them like the rest.
        """
        found = estimate_of(self._settings.estimator, self._state.evidence, self._settings.level, self._widening())
        return widened(found, self._ungraded_probability())

    def _widening(self) -> float:
        pairs = self._settings.widening
        if not pairs:
            return 1.0
        return float(np.interp(len(self._state.items), [k for k, _ in pairs], [factor for _, factor in pairs]))

    def _ungraded_probability(self) -> FloatArray:
        state = self._state
        ungraded = [at for at, (kind, _) in state.withdrawn.items() if kind is Withdrawal.UNGRADED]
        return self._bank.probability(state.theta)[ungraded]

    def replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Apply events as `events` gave them, in order.

        Raises
        ------
        EngineError
            On an event of unknown kind or without its keys; the events before it have been applied.
        BankError, StateError
            As the method of the same name does.
        """
        for number, event in enumerate(events):
            try:
                kind, item = event["kind"], event["item"]
                spent = Spent(event.get("cost_usd"), event.get("duration_s"))
                if kind == "observe":
                    if "draw" in event:
                        probability, pool, random = event["draw"]
                        self.recall(item, Draw(float(probability), int(pool), bool(random)))
                    self.observe(item, event["passed"], event.get("trials", 1), spent)
                elif kind == "withdraw":
                    self.withdraw(item, event["as"], event["reason"], spent)
                elif kind == "reinstate":
                    self.reinstate(item)
                else:
                    raise EngineError(
                        f"unknown kind {kind!r}", place=f"event {number}", remedy="Replay what this version wrote"
                    )
            except KeyError as missing:
                raise EngineError(
                    f"no {missing.args[0]!r}", place=f"event {number}", remedy="Replay whole events, in order"
                ) from missing

    def _position(self, item: str) -> int:
        position = self._bank.index.get(item)
        return int(self._bank.positions([item])[0]) if position is None else position

    def _in_flight(self, pending: Sequence[str]) -> tuple[int, ...]:
        positions = tuple(self._position(item) for item in pending)
        for item, position in zip(pending, positions, strict=True):
            if not self._state.open[position] or positions.count(position) > 1:
                raise StateError(
                    "is in flight, yet listed twice, or has an outcome, or was withdrawn",
                    place=f"item {item!r}",
                    remedy="List each item from its choice until its outcome, once",
                )
        return positions

    def _stop(self, in_flight: tuple[int, ...]) -> tuple[EndReason, str] | None:
        view = StopView(self._state, len(in_flight), self.estimate)
        for rule in self._settings.stops:
            found = rule.check(view)
            if found is not None:
                return found
        if np.count_nonzero(self._state.open) > len(in_flight):
            return None
        withdrawn = len(self._state.withdrawn)
        if withdrawn:
            return EndReason.NONE_AVAILABLE, f"the rest of the bank, {withdrawn} items, is withdrawn"
        return EndReason.BANK_EXHAUSTED, f"all {len(self._bank)} items of the bank are executed or in flight"


def _withdrawal(kind: Withdrawal | str) -> Withdrawal:
    try:
        return Withdrawal(kind)
    except ValueError:
        raise EngineError(
            f"no withdrawal {kind!r}",
            place="withdraw",
            remedy="Give one of " + ", ".join(known.value for known in Withdrawal),
        ) from None
