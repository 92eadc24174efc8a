"""Span trees in OpenTelemetry GenAI JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.records.vocabulary import Outcome, Reason
from tests.importers.reading import Read, write_json


def _otel(*events: dict[str, Any]) -> dict[str, Any]:
    def attribute(key: str, value: Any) -> dict[str, Any]:
        kind = "intValue" if isinstance(value, int) else "stringValue"
        return {"key": key, "value": {kind: str(value)}}

    chat: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.provider.name": "openai",
    }
    chat |= {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", "gen_ai.tool.call.arguments": '{"p": 1}'}
    spans: list[dict[str, Any]] = [
        {
            "traceId": "t1",
            "spanId": "1",
            "name": "invoke_agent",
            "startTimeUnixNano": "1000000000",
            "events": list(events),
        },
        {"traceId": "t1", "spanId": "2", "parentSpanId": "1", "name": "chat", "startTimeUnixNano": "2000000000"},
        {"traceId": "t1", "spanId": "3", "parentSpanId": "1", "name": "tool", "startTimeUnixNano": "3000000000"},
    ]
    for span, own in zip(spans, ({}, chat, tool), strict=True):
        span["attributes"] = [attribute(key, value) for key, value in own.items()]
        span["endTimeUnixNano"] = "4000000000"
    service = {"attributes": [attribute("service.name", "shop")]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": spans}]}]}


def test_otel_trace_is_an_ungraded_episode_with_spans(tmp_path: Path) -> None:
    found = Read(write_json(tmp_path / "otlp.json", _otel()))
    (episode,) = found.episodes
    assert episode.outcome is Outcome.UNGRADED
    spans = [step for step in episode.steps() if step.kind == "span"]
    assert [(step.span, step.parent) for step in spans] == [("1", None), ("2", "1"), ("3", "1")]
    assert spans[1].payload["usage_raw"] == {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    assert [s.payload["arguments"] for s in episode.steps() if s.kind == "tool.call"] == [{"p": 1}]
    assert (found.runs[0].suite, found.runs[0].model) == ("shop", "m")


def test_otel_evaluation_event_is_a_verdict(tmp_path: Path) -> None:
    score = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 1.0}}
    event = {"name": "gen_ai.evaluation.result", "attributes": [score]}
    lines = "\n".join(json.dumps(_otel(event)) for _ in range(2))
    (tmp_path / "otlp.jsonl").write_text(lines)
    (episode,) = Read(tmp_path / "otlp.jsonl").episodes
    assert episode.reason is Reason.VERDICT_CONFLICT  # the same trace on two lines has two events
    assert Read(write_json(tmp_path / "one.json", _otel(event))).outcomes() == ["passed"]
