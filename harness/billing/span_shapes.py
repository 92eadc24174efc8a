"""Spans of others as rows: OpenTelemetry (OTLP JSON and the SDKs' own JSON), Weave calls, and our own records.

One function per shape, each from a plain object to a :class:`Reading`, or None when the object is of another shape.
Ids are taken together with their trace: a span id is unique within its trace only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.billing.usage import normalise
from harness.records.usage import Usage

_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_RESPONSE = ("gen_ai.response.id", "llm.response.id")
_TIER = ("openai.response.service_tier", "gen_ai.openai.response.service_tier", "gen_ai.response.service_tier")
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


@dataclass(frozen=True, slots=True)
class Part:
    """Usage of one model within a span; `tier` is how it was served, where the source says."""

    model: str | None
    usage: Usage
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One span as its source has it. `parts` holds one entry for a call, several for a total over models.

    `failed_usage`: there was a usage object that could not be read. `cost_usd`: as recorded by the source.
    """

    span: str
    parent: str | None
    trace: str
    attempt: int = 1
    provider: str | None = None
    response: str | None = None
    model: str | None = None
    parts: tuple[Part, ...] = ()
    cost_usd: float | None = None
    charged: bool = True
    failed_usage: bool = False

    @property
    def usage(self) -> Usage | None:
        """All parts together, or None without any."""
        if not self.parts:
            return None
        total = self.parts[0].usage
        for part in self.parts[1:]:
            total = total + part.usage
        return total


def readings(document: Any) -> Iterator[Reading]:
    """Every span below a document (an object, a list, or OTLP's nesting); what is no span is passed over."""
    open_: list[Any] = [document]
    while open_:
        value = open_.pop()
        if isinstance(value, list):
            open_.extend(reversed(value))
        elif isinstance(value, Mapping):
            found = reading(value)
            if found is not None:
                yield found
                continue
            logged = value.get("raw_logging_results")
            if isinstance(logged, Mapping):  # by task, without ids
                for task, calls in logged.items():
                    yield from _timed(str(task), _mapping(calls))
            open_.extend(value[name] for name in _CONTAINERS if isinstance(value.get(name), (list, Mapping)))


# A mapping below `raw_logging_results` is no span and holds none of these.
_CONTAINERS = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "raw_logging_results")


def reading(value: Mapping[str, Any]) -> Reading | None:
    """One object as a span, or None when it is none."""
    for shape in (_weave, _otlp, _sdk, _own):
        found = shape(value)
        if found is not None:
            return found
    return None


def _weave(value: Mapping[str, Any]) -> Reading | None:
    """A Weave call: its summary repeats the usage of everything below it, its output is the whole response. Wrapper and
    client are two ops of one service: no provider is read from their names."""
    if not ("op_name" in value and "trace_id" in value and "id" in value):
        return None
    output, summary = (_mapping(value.get(name)) for name in ("output", "summary"))
    by_model = _mapping(summary.get("usage"))
    tier = _text(output.get("service_tier"))
    raw = {str(model): counts for model, counts in by_model.items()}
    if not raw and output.get("usage") is not None:
        raw = {str(output.get("model")): output["usage"]}
    parts, failed = _parts(raw.items(), tier)
    return Reading(
        span=_joined(value["trace_id"], value["id"]),
        parent=None if value.get("parent_id") is None else _joined(value["trace_id"], value["parent_id"]),
        trace=str(value["trace_id"]),
        response=_text(output.get("id")),
        model=_text(output.get("model")) or (parts[0].model if len(parts) == 1 else None),
        parts=parts,
        failed_usage=failed,
    )


def _parts(raw: Iterable[tuple[str, Any]], tier: str | None) -> tuple[tuple[Part, ...], bool]:
    parts, failed = [], False
    for model, counts in raw:
        usage = normalise({key: count for key, count in _mapping(counts).items() if key != "requests"})
        if usage is None:
            failed = True
        else:
            parts.append(Part(model, usage, tier))
    return (() if failed else tuple(parts)), failed


def _timed(task: str, calls: Mapping[str, Any]) -> Iterator[Reading]:
    """Calls of which only usage and times are kept (`call_metadata`). A call within the time of another that reports
    the same usage is the same response, recorded by the client below the wrapper; nothing else tells them apart."""
    model = _text(calls.get("model"))
    metadata = calls.get("call_metadata")
    entries = [_mapping(entry) for entry in metadata] if isinstance(metadata, list) else []
    timed = [
        (_text(one.get("started_at")) or "", _text(one.get("ended_at")) or "", one.get("usage")) for one in entries
    ]
    order = sorted(range(len(timed)), key=lambda n: (timed[n][0], _later_first(timed[n][1])))
    open_: list[int] = []
    for number in order:
        start, end, usage = timed[number]
        open_ = [other for other in open_ if timed[other][1] >= start]
        around = [o for o in open_ if start and timed[o][1] >= end and timed[o][2] == usage]
        open_.append(number)
        counted = normalise(usage)
        yield Reading(
            span=_joined(task, number),
            parent=_joined(task, around[-1]) if around else None,
            trace="",  # a task's name does not tell whose: archives of two runs share it
            model=model,
            parts=() if counted is None else (Part(model, counted),),
            failed_usage=counted is None,
        )


def _later_first(moment: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in moment)


def _otlp(value: Mapping[str, Any]) -> Reading | None:
    if not ("spanId" in value and "traceId" in value):
        return None
    attributes = value.get("attributes", {})
    if isinstance(attributes, list):
        pairs = (entry for entry in attributes if isinstance(entry, Mapping) and "key" in entry)
        attributes = {str(entry["key"]): _otlp_value(entry.get("value")) for entry in pairs}
    return _attributed(value["traceId"], value["spanId"], value.get("parentSpanId") or None, _mapping(attributes))


def _otlp_value(value: Any) -> Any:
    value = _mapping(value)
    for name in _VALUES:
        if name in value:
            # OTLP writes 64-bit integers as text.
            return int(value[name]) if name == "intValue" and str(value[name]).lstrip("-").isdigit() else value[name]
    return None


def _sdk(value: Mapping[str, Any]) -> Reading | None:
    """What the SDKs print: `context`, `parent_id`, `attributes`."""
    context = _mapping(value.get("context"))
    if not ("span_id" in context and "trace_id" in context):
        return None
    return _attributed(
        context["trace_id"], context["span_id"], value.get("parent_id") or None, _mapping(value.get("attributes"))
    )


def _attributed(trace: Any, span: Any, parent: Any, attributes: Mapping[str, Any]) -> Reading:
    model, tier = _first(attributes, _MODEL), _first(attributes, _TIER)
    counted = any(name.startswith(("gen_ai.usage.", "llm.token_count.")) for name in attributes)
    usage = normalise(attributes) if counted else None
    cost = attributes.get("gen_ai.usage.cost", attributes.get("llm.cost.total"))
    return Reading(
        span=_joined(trace, span),
        parent=None if parent is None else _joined(trace, parent),
        trace=str(trace),
        provider=_first(attributes, _PROVIDER),
        response=_first(attributes, _RESPONSE),
        model=model,
        parts=() if usage is None else (Part(model, usage, tier),),
        cost_usd=_cost(cost),
        failed_usage=counted and usage is None,
    )


def _own(value: Mapping[str, Any]) -> Reading | None:
    """Our own record of a span: `span`, with `usage` in our buckets or in a provider's words."""
    if not isinstance(value.get("span"), str):
        return None
    raw, model, trace = value.get("usage"), _text(value.get("model")), str(value.get("trace", ""))
    usage = _own_usage(raw)
    attempt = value.get("attempt", 1)
    return Reading(
        span=_joined(trace, value["span"]) if trace else value["span"],
        parent=None
        if value.get("parent") is None
        else _joined(trace, value["parent"])
        if trace
        else str(value["parent"]),
        trace=trace,
        attempt=attempt if isinstance(attempt, int) else 1,
        provider=_text(value.get("provider")),
        response=_text(value.get("response_id")),
        model=model,
        parts=() if usage is None else (Part(model, usage, _text(value.get("service_tier"))),),
        cost_usd=_cost(value.get("cost_usd")),
        charged=value.get("charged") is not False,
        failed_usage=raw is not None and usage is None,
    )


def _own_usage(raw: Any) -> Usage | None:
    if isinstance(raw, Mapping) and "input" in raw and raw.keys() <= Usage.model_fields.keys():
        try:
            usage = Usage.model_validate(dict(raw), strict=True)
        except ValueError:
            return None
        return usage if usage.known else None
    return normalise(raw)


def _cost(value: Any) -> float | None:
    """A recorded cost; NaN, infinite and negative ones are none."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
    return float(value) if known else None


def _first(attributes: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := _text(attributes.get(name))) is not None), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(trace: Any, span: Any) -> str:
    return f"{trace}/{span}" if trace else str(span)
