"""Span files of others, small: Weave calls as HAL uploads them, OTLP JSON, the SDKs' JSON."""

from __future__ import annotations

from typing import Any

MODEL = "gpt-4.1-2025-04-14"


def weave(
    name: str, parent: str | None, response: str, prompt: int, completion: int, trace: str = "t"
) -> dict[str, Any]:
    """A Weave call whose summary repeats its usage, as a wrapper and its client both have it."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {
        "id": name,
        "trace_id": trace,
        "parent_id": parent,
        "op_name": "litellm.completion" if parent is None else "openai.chat.completions.create",
        "output": {"id": response, "model": MODEL, "usage": usage},
        "summary": {"usage": {MODEL: {"requests": 1, **usage}}},
    }


def upload() -> dict[str, Any]:
    """The hand-made example of the format's description: two wrapped calls and one that is not; its total counts the
    wrapped ones twice."""
    calls = [weave("E", None, "r3", 500, 10)]
    for outer, inner, response, prompt, completion in (("C", "D", "r2", 2000, 50), ("A", "B", "r1", 1000, 100)):
        calls += [weave(inner, outer, response, prompt, completion), weave(outer, None, response, prompt, completion)]
    return {
        "config": {"agent_name": "tool calling"},
        "results": {"total_cost": 0.015480},
        "total_usage": {MODEL: {"prompt_tokens": 6500, "completion_tokens": 310}},
        "raw_logging_results": calls,
    }


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """Spans in OTLP's nesting."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def otlp_span(name: str, parent: str = "", **attributes: int | str) -> dict[str, Any]:
    """One span in OTLP JSON; keys of attributes with `__` for dots, integers as text."""
    return {
        "traceId": "5b8aa5a2",
        "spanId": name,
        "parentSpanId": parent,
        "attributes": [
            {
                "key": key.replace("__", "."),
                "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
            }
            for key, value in attributes.items()
        ],
    }
