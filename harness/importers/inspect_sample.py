"""What happened in one Inspect sample: messages by role, model calls by event, attachments put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.importers.reports import listed, mapping
from harness.importers.steps import answered, called, said, text
from harness.records.archive import Step
from harness.records.vocabulary import Actor, Phase

_ATTACHMENT = "attachment://"


def sample_steps(value: Mapping[str, Any]) -> list[Step]:
    """The steps of a sample: its model calls, from its events, then what was said and called, in order."""
    attachments = mapping(value.get("attachments"))
    steps = _model_calls(value)
    for message in map(mapping, listed(value.get("messages"))):
        role, content = message.get("role"), _whole(message.get("content"), attachments)
        if role == "tool":
            error = mapping(message.get("error")).get("message")
            steps.append(answered(content, message.get("tool_call_id"), error))
            continue
        actor, phase = _speaker(role, message)
        if content not in (None, ""):
            steps.append(said(actor, content, phase=phase))
        for call in map(mapping, listed(message.get("tool_calls"))):
            steps.append(called(actor, call.get("function"), call.get("arguments"), call.get("id")))
    return steps


def _speaker(role: Any, message: Mapping[str, Any]) -> tuple[Actor, Phase]:
    """The prompt of a task is the harness's word, not a simulated user's."""
    if role == "assistant":
        return Actor.AGENT, Phase.INTERACTION
    if role == "system":
        return Actor.HARNESS, Phase.SETUP
    return (Actor.HARNESS if message.get("source") == "input" else Actor.USER), Phase.INTERACTION


def sample_usage(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage of a sample without events: that of its one model. Several may hold a grader's, and say nothing."""
    usages = mapping(value.get("model_usage"))
    if listed(value.get("events")) or len(usages) != 1:
        return None
    return disjoint(next(iter(usages.values())))


def disjoint(usage: Any) -> dict[str, Any] | None:
    """Inspect's usage in the dialect that it is: both cache buckets beside input, reasoning inside output."""
    raw = mapping(usage)
    if not raw:
        return None
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "input_tokens_cache_read": "cache_read_input_tokens",
        "input_tokens_cache_write": "cache_creation_input_tokens",
    }
    return {ours: raw[theirs] for theirs, ours in names.items() if raw.get(theirs) is not None}


def _model_calls(value: Mapping[str, Any]) -> list[Step]:
    events = [mapping(event) for event in listed(value.get("events"))]
    graders = _grader_spans(events)
    steps = []
    for number, event in enumerate(events):
        if event.get("event") != "model" or event.get("pending"):
            continue
        output = mapping(event.get("output"))
        cached = event.get("cache") == "read"
        payload = {
            "gen_ai.response.model": output.get("model") or event.get("model"),
            "gen_ai.response.id": mapping(output.get("metadata")).get("id"),
            "usage_raw": disjoint(output.get("usage")),
            "error": event.get("error"),
            "charged": False if cached else None,
        }
        kept = {key: item for key, item in payload.items() if item is not None}
        actor = Actor.GRADER if event.get("span_id") in graders else Actor.AGENT
        phase = Phase.GRADING if actor is Actor.GRADER else Phase.INTERACTION
        span = str(event.get("uuid") or f"model {number}")
        steps.append(Step("model.call", actor, kept, phase, text(event.get("timestamp")), span))
    return steps


def _grader_spans(events: list[Mapping[str, Any]]) -> set[Any]:
    """Spans of scorers, and all below them. Events are in order of time, so a parent comes first."""
    found: set[Any] = set()
    for event in events:
        if event.get("event") == "span_begin" and (
            str(event.get("type")) in ("scorer", "scorers") or event.get("parent_id") in found
        ):
            found.add(event.get("id"))
    return found


def _whole(content: Any, attachments: Mapping[str, Any]) -> Any:
    """Content with what Inspect keeps apart put back in."""
    if isinstance(content, str) and content.startswith(_ATTACHMENT):
        return attachments.get(content.removeprefix(_ATTACHMENT), content)
    if isinstance(content, list):
        parts = [mapping(part) for part in content]
        if all(part.get("type") == "text" for part in parts):
            return "\n".join(str(_whole(part.get("text"), attachments)) for part in parts)
    return content
