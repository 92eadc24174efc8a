"""One interaction: the gate that every action of a solver passes, and why it closed.

The harness ends an interaction by closing the gate, never by an exception type, so nothing that a solver
raises can be mistaken for a limit, and a solver that swallows exceptions gains nothing: behind a closed gate
no action happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from harness.protocols import Remaining
from harness.records.errors import ProviderFault, Revoked, SandboxFault, StoreError
from harness.records.task import Budget
from harness.records.vocabulary import Reason, StopReason
from harness.runner.budget import BudgetStop, Spent, remaining

ITS_OWN_FAULT = frozenset({400, 413, 422})  # the service refused what the solver sent: too long, not allowed


@dataclass
class Interaction:
    """The live state of one interaction. `spent` is replaced, never changed in place."""

    budget: Budget
    now: Callable[[], float] = anyio.current_time
    spent: Spent = field(default_factory=Spent)
    stop: StopReason | None = None
    detail: str = ""
    reason: Reason | None = None
    provider_fault: ProviderFault | None = None
    store_fault: StoreError | None = None  # the store failed under an action: what the solver does is not written down
    completed_calls: int = 0
    unanswered: str = ""  # what the service last did instead of answering
    started_s: float = 0.0
    ended_s: float | None = None
    _open: bool = False
    _scopes: set[anyio.CancelScope] = field(default_factory=set)

    def open(self) -> None:
        """Start the solver's clock and open the gate."""
        self.started_s = self.now()
        self._open = True

    @property
    def elapsed_s(self) -> float:
        """Seconds on the solver's clock."""
        return (self.now() if self.ended_s is None else self.ended_s) - self.started_s

    def close_for_time(self) -> None:
        """Close because the wall-time budget is used up: by the solver, or by a service that never gave an answer."""
        if self.refused and self.completed_calls == 0:
            self.close_for_refusal()
        elif self.unanswered and self.completed_calls == 0:
            detail = f"the model service gave no answer in {self.budget.wall_s} s: {self.unanswered}"
            self.close(StopReason.INFRASTRUCTURE, detail, Reason.PROVIDER)
        self.close(StopReason.TIME, f"{self.budget.wall_s} s of wall time used")

    def close_for_refusal(self) -> None:
        """Close because the service took no call of this solver's: a setting or a bug, of which the task shows nothing,
        and which a new attempt would meet again."""
        self.close(StopReason.SOLVER_ERROR, str(self.provider_fault), Reason.PROVIDER_REFUSED)

    @property
    def refused(self) -> bool:
        """Whether the service refused the last call for what the solver sent."""
        return self.provider_fault is not None and self.provider_fault.status in ITS_OWN_FAULT

    @property
    def out_of_time(self) -> bool:
        return self.budget.wall_s is not None and self.elapsed_s >= self.budget.wall_s

    def remaining(self) -> Remaining:
        return remaining(self.budget, self.spent, self.elapsed_s)

    def close(self, stop: StopReason, detail: str = "", reason: Reason | None = None) -> None:
        """Close the gate for `stop`, unless it is closed already; whatever is under way is cancelled."""
        if self.stop is None:
            self.stop, self.detail, self.reason = stop, detail, reason
            self.ended_s = self.now()
            if self.budget.wall_s is not None:
                self.ended_s = min(self.ended_s, self.started_s + self.budget.wall_s)
        self._open = False
        for scope in tuple(self._scopes):
            scope.cancel()

    def demand(self, verdict: BudgetStop | None) -> None:
        """Close for a budget's verdict, if there is one, and refuse the action that asked."""
        if verdict is not None:
            self.close(verdict.stop, verdict.detail, verdict.reason)
            raise Revoked("the budget is used up", place=verdict.detail)

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """A cancel scope that the gate cancels when it closes."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    @contextmanager
    def passage(self) -> Iterator[None]:
        """The gate around one action. Raises Revoked when closed before or meanwhile.

        A fault of the sandbox or the store inside closes the gate, whatever the solver makes of the exception.
        """
        if self._open and self.out_of_time:
            self.close_for_time()
        if not self._open or self.store_fault is not None:
            raise Revoked("the episode is over; nothing was done")
        with self.scope() as scope:
            try:
                yield
            except SandboxFault as fault:
                self.close(StopReason.INFRASTRUCTURE, str(fault), Reason(fault.reason))
                raise
            except StoreError as fault:
                self.store_fault = fault
                self.close(StopReason.INFRASTRUCTURE, str(fault), Reason.HARNESS_ERROR)
                raise
        if scope.cancelled_caught:
            raise Revoked("the episode ended while this was under way")
