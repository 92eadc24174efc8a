"""Budgets as pure arithmetic: what was spent against what was allowed, and the stop that follows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.protocols import Remaining
from harness.records.task import Budget
from harness.records.usage import Usage
from harness.records.vocabulary import Reason, StopReason


@dataclass(frozen=True)
class Spent:
    """What a solver has spent. `cost_usd` and `tokens` are lower bounds once a call came without usage or price."""

    tokens: int = 0
    calls: int = 0
    commands: int = 0
    cost_usd: float = 0.0
    usage_unknown: bool = False
    cost_unknown: bool = False

    @property
    def steps(self) -> int:
        return max(self.calls, self.commands)

    def with_call_begun(self) -> Spent:
        """One model call more, counted before it is made: calls at the same time cannot slip past a step budget."""
        return replace(self, calls=self.calls + 1)

    def with_response(self, usage: Usage | None, cost_usd: float | None) -> Spent:
        """After a response that was, or may have been, charged; `usage` and `cost_usd` None mean unknown."""
        return replace(
            self,
            tokens=self.tokens + (usage.total if usage else 0),
            cost_usd=self.cost_usd + (cost_usd or 0.0),
            usage_unknown=self.usage_unknown or usage is None or not usage.known,
            cost_unknown=self.cost_unknown or cost_usd is None,
        )

    def with_command(self) -> Spent:
        return replace(self, commands=self.commands + 1)


@dataclass(frozen=True)
class BudgetStop:
    """A stop that a budget demands, and why in words; with a `reason`, what there is then is not graded."""

    stop: StopReason
    detail: str
    reason: Reason | None = None


def before_call(budget: Budget, spent: Spent) -> BudgetStop | None:
    """May another model call start? Not when an account is used up (CASES T11: asked before it is paid for)."""
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return BudgetStop(StopReason.TOKENS, f"{spent.tokens} of {budget.tokens} tokens used")
    if budget.cost_usd is not None and spent.cost_usd >= budget.cost_usd:
        return BudgetStop(StopReason.COST, f"${spent.cost_usd:.4f} of ${budget.cost_usd:.4f} spent")
    if budget.steps is not None and spent.calls >= budget.steps:
        return BudgetStop(StopReason.STEPS, f"{spent.calls} of {budget.steps} steps taken")
    return None


def before_command(budget: Budget, spent: Spent) -> BudgetStop | None:
    """May another command start?"""
    if budget.steps is not None and spent.commands >= budget.steps:
        return BudgetStop(StopReason.STEPS, f"{spent.commands} of {budget.steps} steps taken")
    return None


def after_call(budget: Budget, spent: Spent) -> BudgetStop | None:
    """Must the trial stop now that a call is booked? An overshoot is kept and ends it; so does an account that cannot
    be kept because the service reports no usage, or no price is known (CASES T09): through no fault of the agent, so
    that is no fail of its own."""
    if budget.tokens is not None and spent.tokens > budget.tokens:
        return BudgetStop(StopReason.TOKENS, f"{spent.tokens} of {budget.tokens} tokens used")
    if budget.tokens is not None and spent.usage_unknown:
        return BudgetStop(
            StopReason.TOKENS, "the service reported no usage, so the token budget cannot be kept", Reason.SPEND_UNKNOWN
        )
    if budget.cost_usd is not None and spent.cost_usd > budget.cost_usd:
        return BudgetStop(StopReason.COST, f"${spent.cost_usd:.4f} of ${budget.cost_usd:.4f} spent")
    if budget.cost_usd is not None and spent.cost_unknown:
        missing = "usage was not reported" if spent.usage_unknown else "price is unknown"
        return BudgetStop(
            StopReason.COST, f"a call's {missing}, so the cost budget cannot be kept", Reason.SPEND_UNKNOWN
        )
    return None


def remaining(budget: Budget, spent: Spent, elapsed_s: float) -> Remaining:
    """What is left on each account, never below zero; None where there is no limit."""
    return Remaining(
        wall_s=None if budget.wall_s is None else max(0.0, budget.wall_s - elapsed_s),
        tokens=None if budget.tokens is None else max(0, budget.tokens - spent.tokens),
        steps=None if budget.steps is None else max(0, budget.steps - spent.steps),
        cost_usd=None if budget.cost_usd is None else max(0.0, budget.cost_usd - spent.cost_usd),
    )


LONGEST_COMMAND_S = 24 * 3600.0  # where neither a limit nor a budget says otherwise


def clamp_s(asked: float | None, ceiling: float | None, left: float | None) -> float:
    """A usable time limit for one command, whatever a model asked for (CASES T06): within `ceiling` and `left`.

    NaN, negative and absent requests mean the most that is allowed.
    """
    limit = min((bound for bound in (ceiling, left) if bound is not None), default=LONGEST_COMMAND_S)
    if asked is not None and asked > 0:  # false for NaN
        limit = min(limit, asked)
    return max(limit, 0.05)
