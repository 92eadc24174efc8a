"""OpenTelemetry traces in the GenAI conventions, as OTLP JSON: one document, or one per line. An episode is a trace.

Traces hold what was called and what it used. A verdict is one only if an event `gen_ai.evaluation.result` gives it.
Spans of one trace may lie anywhere in the file, so they are held together until its end: this format alone is not read
in a bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import listed, mapping, unread
from harness.importers.shape import only_file, shape
from harness.importers.steps import parsed, text, verdict
from harness.records.archive import (
    ArchiveEpisode,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    ImportOptions,
    Recognition,
    SourceRef,
    Step,
)
from harness.records.base import canonical_json, sha256_of
from harness.records.vocabulary import Actor, Outcome, Phase, Reason

MISSING = ("a verdict, unless an evaluation event gives one", "the task's definition", "why the agent stopped")
_STREAMED = frozenset({"resourceSpans"})
_USAGE = "gen_ai.usage."
_ERROR = 2  # OTLP's status code


@dataclass(frozen=True)
class OtelImporter:
    """An :class:`harness.protocols.Importer` for OTLP JSON."""

    name: str = "otel"

    def recognises(self, archive: Archive) -> Recognition | None:
        name = only_file(archive)
        found = shape(archive, name) if name else None
        if found is None or not found.has("resourceSpans"):
            return None
        return Recognition(self.name, "OpenTelemetry spans (OTLP JSON)", 2, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        traces: dict[str, _Trace] = {}
        for name in archive.names:
            for member in _resources(archive, name):
                if member.problem or not isinstance(member.value, dict):
                    yield unread(member, "resourceSpans hold scopeSpans, which hold spans")
                else:
                    _sort_in(member, traces)
        known: set[str] = set()
        for trace in traces.values():
            run = trace.run()
            if run.key not in known:
                known.add(run.key)
                yield run
            yield trace.episode(run.key)


def _resources(archive: Archive, name: str) -> Iterator[Member]:
    if shape(archive, name).kind != "lines":
        for member in archive.members(name, _STREAMED):
            if member.problem or (len(member.path) == 2 and member.path[0] == "resourceSpans"):
                yield member
        return
    for member in archive.lines(name):
        if member.problem:
            yield member
        for resource in listed(mapping(member.value).get("resourceSpans")):
            yield member._replace(value=resource)


@dataclass
class _Span:
    """A span with its attributes as plain values."""

    id: str
    parent: str | None
    name: str
    start: str
    end: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    error: str | None


@dataclass
class _Trace:
    """The spans of one trace."""

    id: str
    resource: dict[str, Any]
    source: SourceRef
    spans: list[_Span] = field(default_factory=list)

    def run(self) -> ArchiveRun:
        service = text(self.resource.get("service.name")) or "otel"
        models = {span.attributes.get("gen_ai.request.model") for span in self.spans}
        models.discard(None)
        agents = [span.attributes.get("gen_ai.agent.name") for span in self._ordered()]
        return ArchiveRun(
            key=service,
            suite=service,
            scaffold=next((text(agent) for agent in agents if agent), None),
            model=str(next(iter(models))) if len(models) == 1 else None,
            created=self._ordered()[0].start,
            missing=MISSING,
        )

    def episode(self, run: str) -> ArchiveEpisode:
        spans = self._ordered()
        outcome, reason, detail, reward, grading = self._graded()
        ids = {span.id for span in spans}
        roots = [span for span in spans if span.parent not in ids]
        label = next((text(s.attributes.get("gen_ai.conversation.id")) for s in roots), "") or self.id
        return ArchiveEpisode(
            run=run,
            task=ArchiveTask(label),
            source=self.source,
            outcome=outcome,
            reason=reason,
            detail=detail,
            reward=reward,
            grading=grading,
            steps=lambda: [step for span in spans for step in _steps(span)],
            started=spans[0].start,
            finished=max(span.end for span in spans),
            expects_usage=any(span.attributes.get("gen_ai.request.model") for span in spans),
            stop_detail=next((span.error for span in roots if span.error), ""),
            flags=() if len(roots) == 1 else (f"{len(roots)} roots",),
            stated={"trace_id": self.id, "resource": self.resource},
        )

    def _ordered(self) -> list[_Span]:
        return sorted(self.spans, key=lambda span: (span.start, span.id))

    def _graded(self) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
        results = [found for span in self.spans for name, found in span.events if name == "gen_ai.evaluation.result"]
        if len(results) == 1:
            stored = results[0].get("gen_ai.evaluation.score.value")
            outcome, reason, detail, reward = verdict(stored, "gen_ai.evaluation.score.value")
            claim = Claim(value="yes" if reason is None else "no", basis=Basis.STATED, evidence=detail)
            return outcome, reason, detail, reward, claim
        why = f"{len(results)} evaluation events: which one counts is not said" if results else "no evaluation event"
        reason_ = Reason.VERDICT_CONFLICT if results else Reason.VERDICT_MISSING
        return (
            Outcome.UNGRADED,
            reason_,
            why,
            None,
            Claim(value=None if results else "no", basis=Basis.INFERRED, evidence=why),
        )


def _sort_in(member: Member, traces: dict[str, _Trace]) -> None:
    resource = _plain(mapping(member.value.get("resource")).get("attributes"))
    for scope in map(mapping, listed(member.value.get("scopeSpans"))):
        for raw in map(mapping, listed(scope.get("spans"))):
            trace = str(raw.get("traceId"))
            if trace not in traces:
                data = canonical_json(trace)
                first = member.source.model_copy(update={"sha256": member.source.sha256 or sha256_of(data)})
                traces[trace] = _Trace(trace, resource, first)
            traces[trace].spans.append(_span(raw))


def _span(raw: Mapping[str, Any]) -> _Span:
    status = mapping(raw.get("status"))
    events = [(text(e.get("name")), _plain(e.get("attributes"))) for e in map(mapping, listed(raw.get("events")))]
    return _Span(
        id=str(raw.get("spanId")),
        parent=str(raw["parentSpanId"]) if raw.get("parentSpanId") else None,
        name=text(raw.get("name")),
        start=_time(raw.get("startTimeUnixNano")),
        end=_time(raw.get("endTimeUnixNano")),
        attributes=_plain(raw.get("attributes")),
        events=events,
        error=text(status.get("message")) or "error" if status.get("code") in (_ERROR, "STATUS_CODE_ERROR") else None,
    )


def _time(value: Any) -> str:
    try:
        nanoseconds = int(value)
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="microseconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def _plain(attributes: Any) -> dict[str, Any]:
    """OTLP's list of typed values as an object."""
    return {str(item.get("key")): _value(mapping(item.get("value"))) for item in map(mapping, listed(attributes))}


def _value(typed: Mapping[str, Any]) -> Any:
    for kind, value in typed.items():
        if kind == "intValue":
            return int(value) if str(value).lstrip("-").isdigit() else value
        if kind == "arrayValue":
            return [_value(mapping(item)) for item in listed(mapping(value).get("values"))]
        if kind == "kvlistValue":
            return _plain(mapping(value).get("values"))
        return value
    return None


def _steps(span: _Span) -> Iterator[Step]:
    """A span, and the tool call or the messages that its attributes hold."""
    own = span.attributes
    usage = {key: value for key, value in own.items() if key.startswith(_USAGE)}
    payload: dict[str, Any] = {"name": span.name, "ended": span.end}
    payload |= {key: value for key, value in own.items() if key.startswith("gen_ai.") and not key.startswith(_USAGE)}
    payload |= {key: value for key, value in own.items() if key.endswith(".service_tier")}
    payload.setdefault("gen_ai.response.model", own.get("gen_ai.request.model"))
    payload.setdefault("gen_ai.provider.name", own.get("gen_ai.system"))
    if usage:
        payload["usage_raw"] = usage
    if span.error:
        payload["error"] = span.error
    kept = {key: value for key, value in payload.items() if value is not None}
    yield Step("span", Actor.AGENT, kept, Phase.INTERACTION, span.start, span.id, span.parent)
    if own.get("gen_ai.operation.name") == "execute_tool":
        called = {
            "gen_ai.tool.name": own.get("gen_ai.tool.name"),
            "gen_ai.tool.call.id": own.get("gen_ai.tool.call.id"),
        }
        called["arguments"] = parsed(own.get("gen_ai.tool.call.arguments"))
        yield Step("tool.call", Actor.AGENT, called, Phase.INTERACTION, span.start, None, span.id)
        if "gen_ai.tool.call.result" in own:
            given = {"content": own["gen_ai.tool.call.result"], "gen_ai.tool.call.id": own.get("gen_ai.tool.call.id")}
            yield Step("tool.result", Actor.ENVIRONMENT, given, Phase.INTERACTION, span.end, None, span.id)
