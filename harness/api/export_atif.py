"""Trials as ATIF 1.8 trajectories.

Imported ATIF comes out as it came in. Of our own runs and of other formats, a step is an answer of a model or a
message, and what tools gave back stands with the step that called them, as a model saw it. What is not known is left
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.protocols import EvidenceStore
from harness.records.event import Event
from harness.records.run import RunRow, TrialRow
from harness.records.vocabulary import Actor
from harness.store.flat import agent_name

SCHEMA = "ATIF-v1.8"
_SOURCES = {Actor.AGENT: "agent", Actor.REFERENCE: "agent", Actor.USER: "user"}
_STEP_ORDER = (
    "step_id",
    "timestamp",
    "source",
    "model_name",
    "reasoning_effort",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
)


def trajectory(row: RunRow, trial: TrialRow, store: EvidenceStore) -> dict[str, Any]:
    """The trajectory of a trial. Raises StoreError."""
    events = list(store.events(trial.trial))
    source = next((event.payload for event in events if event.kind == "import.source"), {})
    kept = source.get("stated", {}).get("atif")
    if isinstance(kept, dict):
        return _as_it_was(kept, events)
    steps = _Steps(store)
    for event in events:
        steps.take(event)
    agent: dict[str, Any] = {
        "name": row.config.scaffold or row.config.solver.name,
        "version": row.config.solver.version,
    }
    if row.config.model:
        agent["model_name"] = row.config.model
    return {
        "schema_version": SCHEMA,
        "session_id": row.run,
        "trajectory_id": trial.trial,
        "agent": agent,
        "steps": steps.numbered(),
        "final_metrics": _final(trial, len(steps.steps)),
        "extra": {"task": trial.task, "agent": agent_name(row.config)},
    }


def _final(trial: TrialRow, steps: int) -> dict[str, Any]:
    result = trial.result
    final: dict[str, Any] = {"total_steps": steps}
    if result is None:
        return final
    if result.cost_usd is not None:
        final["total_cost_usd"] = result.cost_usd
    if result.usage is not None and not result.calls_without_usage:
        final |= {f"total_{name}": value for name, value in _metrics(result.usage.plain(), None).items()}
    return final


def _metrics(usage: Mapping[str, Any], cost: Any) -> dict[str, Any]:
    """Disjoint buckets in ATIF's terms: its prompt holds what was cached, its completion the reasoning."""
    parts = {name: usage.get(name) for name in ("input", "cache_read", "cache_write", "output", "reasoning")}
    found: dict[str, Any] = {}
    if parts["input"] is not None:
        found["prompt_tokens"] = sum(parts[name] or 0 for name in ("input", "cache_read", "cache_write"))
    if parts["output"] is not None:
        found["completion_tokens"] = sum(parts[name] or 0 for name in ("output", "reasoning"))
    if parts["cache_read"] is not None:
        found["cached_tokens"] = parts["cache_read"]
    return found if cost is None else found | {"cost_usd": cost}


class _Steps:
    """Gathers events into steps."""

    def __init__(self, store: EvidenceStore) -> None:
        self.steps: list[dict[str, Any]] = []
        self._store = store
        self._open: dict[str, Any] | None = None  # the agent's step that calls and observations belong to
        self._answered = False
        self._talk = False  # a conversation: its own events say what a model call's words repeat
        self._asker = Actor.AGENT  # who made the last call
        self._commands: dict[str | None, dict[str, Any]] = {}

    def numbered(self) -> list[dict[str, Any]]:
        """The steps in ATIF's order of fields, numbered from 1; a trajectory has at least one."""
        steps = self.steps or [{"source": "system", "message": ""}]
        return [
            {key: value for key in _STEP_ORDER if (value := ({"step_id": number} | step).get(key)) is not None}
            for number, step in enumerate(steps, start=1)
        ]

    def take(self, event: Event) -> None:
        """Add an event, if it is one of a trajectory."""
        handler = getattr(self, "_" + event.kind.replace(".", "_"), None)
        if handler is not None:
            handler(event)

    def _text(self, event: Event, part: str) -> str | None:
        """A body of an event, from its payload or from the blob folder."""
        value = event.payload.get(part)
        if value is None and part in event.blobs:
            return self._store.blob(event.blobs[part]).decode("utf-8", "replace")
        return value if isinstance(value, str) or value is None else json.dumps(value)

    def _add(self, event: Event, source: str, message: str | None) -> dict[str, Any]:
        step: dict[str, Any] = {"source": source, "message": message or ""}
        if event.wall:
            step["timestamp"] = event.wall
        self.steps.append(step)
        self._open, self._answered = (step if source == "agent" else None), False
        return step

    def _agent(self, event: Event) -> dict[str, Any]:
        """The agent's open step, or a new one once it was answered."""
        if self._open is None or self._answered:
            return self._add(event, "agent", None)
        return self._open

    def _environment_opened(self, event: Event) -> None:
        self._talk = True

    def _message(self, event: Event) -> None:
        source = _SOURCES.get(event.actor, "system")
        content = self._text(event, "content")
        if source == "agent" and self._open is not None and not self._open["message"] and not self._answered:
            self._open["message"] = content or ""
        else:
            self._add(event, source, content)

    def _model_call(self, event: Event) -> None:
        if event.actor not in (Actor.AGENT, Actor.REFERENCE):
            return
        said = {} if self._talk else json.loads(self._text(event, "message") or "{}")
        step = self._add(event, "agent", said.get("content") if isinstance(said.get("content"), str) else None)
        model = event.payload.get("gen_ai.response.model")
        if model:
            step["model_name"] = model
        usage, cost = event.payload.get("usage"), event.payload.get("cost_usd")
        if usage or cost is not None:
            step["metrics"] = _metrics(usage or {}, cost)
        for call in said.get("tool_calls") or ():
            function = call.get("function") or {}
            _call(step, function.get("name"), _object(function.get("arguments")), call.get("id"))

    def _model_request(self, event: Event) -> None:
        for message in json.loads(self._text(event, "new_messages") or "[]"):
            role, content = message.get("role"), message.get("content")
            if self._talk and role != "system":
                continue
            text = content if isinstance(content, str) or content is None else json.dumps(content)
            if role == "tool":
                self._observe(event, message.get("tool_call_id"), text)
            elif role in ("system", "user"):
                self._add(event, role, text)

    def _tool_call(self, event: Event) -> None:
        self._asker = event.actor
        if event.actor not in (Actor.AGENT, Actor.REFERENCE):
            return
        arguments = event.payload.get("arguments")
        step = self._agent(event)
        _call(step, event.payload.get("gen_ai.tool.name"), _object(arguments), event.payload.get("gen_ai.tool.call.id"))

    def _tool_result(self, event: Event) -> None:
        if self._asker is Actor.USER:
            return  # the user's own tool: the agent has not seen it
        self._observe(event, event.payload.get("gen_ai.tool.call.id"), self._text(event, "content"))

    def _exec_started(self, event: Event) -> None:
        # Of a solver that speaks to no model, commands are all there is; else they repeat what the model called.
        if event.phase == "interaction" and not any("model_name" in step for step in self.steps):
            step = self._add(event, "agent", None)
            _call(step, "exec", {"argv": event.payload.get("argv")}, event.span)

    def _exec(self, event: Event) -> None:
        if self._open is not None and any(
            call["tool_call_id"] == event.span for call in self._open.get("tool_calls", ())
        ):
            stdout = event.payload.get("stdout") or {}
            text = stdout.get("text") if isinstance(stdout, dict) else None
            if text is None and "stdout" in event.blobs:
                text = self._store.blob(event.blobs["stdout"]).decode("utf-8", "replace")
            self._observe(event, event.span, text or "")

    def _observe(self, event: Event, call: Any, content: str | None) -> None:
        step = self._open if self._open is not None else self._add(event, "agent", None)
        results = step.setdefault("observation", {"results": []})["results"]
        result = {} if call is None else {"source_call_id": str(call)}
        results.append(result | {"content": content})
        self._answered = True


def _call(step: dict[str, Any], name: Any, arguments: dict[str, Any], call: Any) -> None:
    calls = step.setdefault("tool_calls", [])
    id_ = str(call) if call is not None else f"call_{len(calls)}"
    calls.append({"tool_call_id": id_, "function_name": str(name), "arguments": arguments})


def _object(arguments: Any) -> dict[str, Any]:
    """Arguments as the object that ATIF wants; what is none is kept under `raw`."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {"raw": arguments}
    return arguments if isinstance(arguments, dict) else {} if arguments is None else {"raw": arguments}


def _as_it_was(envelope: Mapping[str, Any], events: Iterable[Event]) -> dict[str, Any]:
    """An imported trajectory again, from its marks. Embedded sub-agents stand in the envelope whole."""
    steps: dict[Any, dict[str, Any]] = {}
    for event in events:
        mark = event.payload.get("atif")
        if isinstance(mark, dict) and "subagent" not in mark:
            _put_back(steps.setdefault(mark.get("step"), {}), mark, event)
    names = ("schema_version", "session_id", "trajectory_id", "agent")
    head = {name: envelope[name] for name in names if name in envelope}
    return head | {"steps": [_in_order(step) for step in steps.values()]} | dict(envelope)


def _put_back(step: dict[str, Any], mark: Mapping[str, Any], event: Event) -> None:
    payload = event.payload
    if event.kind == "message":
        step |= {"step_id": mark["step"], "source": _SOURCES.get(event.actor, "system"), "message": payload["content"]}
        if event.wall:
            step["timestamp"] = event.wall
        step |= mark["rest"]
        if "tool_calls" in mark["has"]:
            step["tool_calls"] = []
        if "observation" in mark["has"]:
            step["observation"] = {"results": []}
    elif event.kind in ("model.call", "metrics") and "metrics" in payload:
        step["metrics"] = payload["metrics"]
    elif event.kind == "tool.call":
        call = {"tool_call_id": payload["gen_ai.tool.call.id"], "function_name": payload["gen_ai.tool.name"]}
        call["arguments"] = payload["arguments"]
        step["tool_calls"].append(call | ({"extra": mark["extra"]} if "extra" in mark else {}))
    elif event.kind == "tool.result":
        result = {"source_call_id": payload["gen_ai.tool.call.id"]} if "gen_ai.tool.call.id" in payload else {}
        result |= {"content": payload["content"]} if "content" in payload else {}
        step["observation"]["results"].append(result | mark.get("rest", {}))


def _in_order(step: Mapping[str, Any]) -> dict[str, Any]:
    ordered = {key: step[key] for key in _STEP_ORDER if key in step}
    return ordered | {key: value for key, value in step.items() if key not in ordered}
