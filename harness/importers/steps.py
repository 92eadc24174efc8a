"""Steps in one vocabulary, from the words of whoever recorded them."""

from __future__ import annotations

import json
import math
from typing import Any

from harness.records.archive import Step
from harness.records.vocabulary import Actor, Outcome, Phase, Reason

PASS_AT = 1.0
_NEAR = 1e-6


def said(actor: Actor, content: Any, wall: str = "", phase: Phase | None = Phase.INTERACTION) -> Step:
    """A message that somebody wrote."""
    return Step("message", actor, {"content": content}, phase, wall)


def called(actor: Actor, name: Any, arguments: Any, call: Any = None, wall: str = "") -> Step:
    """A tool call. Arguments that are JSON text become what the text says; text that is no JSON stays text."""
    payload = {"gen_ai.tool.name": name, "arguments": parsed(arguments)}
    if call is not None:
        payload["gen_ai.tool.call.id"] = call
    return Step("tool.call", actor, payload, Phase.INTERACTION, wall)


def answered(content: Any, call: Any = None, error: Any = None, wall: str = "") -> Step:
    """What a tool gave back."""
    payload = {"content": content}
    if call is not None:
        payload["gen_ai.tool.call.id"] = call
    if error is not None:
        payload["error"] = error
    return Step("tool.result", Actor.ENVIRONMENT, payload, Phase.INTERACTION, wall)


def model_call(
    *, model: Any = None, usage: Any = None, cost_usd: Any = None, response: Any = None, wall: str = ""
) -> Step:
    """A model's answer to the agent, as far as it was metered. Without usage it is missing coverage, not free."""
    payload = {
        "gen_ai.response.model": model,
        "gen_ai.response.id": response,
        "usage_raw": usage,
        "cost_usd": cost_usd,
    }
    kept = {key: value for key, value in payload.items() if value is not None}
    return Step("model.call", Actor.AGENT, kept, Phase.INTERACTION, wall)


def declared(actions: Any, name: str = "name", arguments: str = "kwargs") -> list[Step]:
    """The reference actions that a task lists: what should be done, not what anybody did."""
    return [
        Step(
            "reference.action",
            Actor.REFERENCE,
            {"gen_ai.tool.name": action.get(name), "arguments": action.get(arguments), "index": index},
            Phase.GRADING,
        )
        for index, action in enumerate(actions if isinstance(actions, list) else ())
        if isinstance(action, dict)
    ]


def parsed(arguments: Any) -> Any:
    """Arguments as a value."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def count(value: Any) -> int | None:
    """A count, or None."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def verdict(reward: Any, field: str) -> tuple[Outcome, Reason | None, str, float | None]:
    """Outcome, reason, detail and reward of a stored verdict. What is no finite number is no verdict."""
    if reward is None:
        return Outcome.UNGRADED, Reason.VERDICT_MISSING, f"{field} is absent", None
    value = float(reward) if isinstance(reward, bool) else number(reward)
    if value is None:
        nan = isinstance(reward, float)
        reason = Reason.VERDICT_NOT_FINITE if nan else Reason.VERDICT_MALFORMED
        return Outcome.UNGRADED, reason, f"{field} is {reward!r}"[:200], None
    outcome = Outcome.PASSED if value >= PASS_AT - _NEAR else Outcome.FAILED
    return outcome, None, f"{field} is {reward!r}", value
