"""The model log of a HAL upload, in both shapes: spans for the bill, and the calls that the agent executed.

Old: a list of weave calls with ids and parents, newest first. New: by task, the longest conversation and the usage of
each call, without ids, so that a parent and its child are two entries of equal usage; that is said, not repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.importers.attribution import Call
from harness.importers.container import Archive
from harness.importers.reports import listed, mapping, unread
from harness.importers.steps import parsed, text
from harness.records.archive import Finding, Step
from harness.records.vocabulary import Actor

_STREAMED = frozenset({"raw_eval_results", "raw_logging_results"})
_USER_PROMPT = "You are a user interacting with an agent"  # how the project's simulated user is told its part


@dataclass
class _Call:
    """What is kept of one logged call."""

    id: str
    parent: str | None
    op: str
    started: str
    ended: str
    model: Any
    response: Any
    usage: Any
    is_user: bool
    executed: list[Call]
    order: int  # among calls that began at the same time
    exception: Any = None
    tier: Any = None


@dataclass
class ModelLog:
    """A model log by task. `header` holds every other field of the upload but the results."""

    header: dict[str, Any] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)
    _calls: dict[str, list[_Call]] = field(default_factory=dict)

    def add(self, task: str, call: _Call) -> None:
        self._calls.setdefault(task, []).append(call)

    def executed(self, task: str) -> list[Call] | None:
        """The agent's calls in order of time, each response once; None where the log holds none to match."""
        seen: set[Any] = set()
        done: list[Call] = []
        for call in self._ordered(task):
            key = call.response if call.response is not None else call.id
            if not call.is_user and key not in seen:
                seen.add(key)
                done += call.executed
        return done or None

    def spans(self, task: str) -> Iterator[Step]:
        """The calls of a task as spans, earliest first; `usage_raw` is in the provider's own dialect."""
        for call in self._ordered(task):
            payload = {
                "name": call.op,
                "gen_ai.provider.name": call.op.partition(".")[0] or None,
                "gen_ai.response.model": call.model,
                "gen_ai.response.id": call.response,
                "openai.response.service_tier": call.tier,
                "usage_raw": call.usage,
                "ended": call.ended,
                "error": call.exception,
            }
            kept = {key: value for key, value in payload.items() if value not in (None, "")}
            actor = Actor.USER if call.is_user else Actor.AGENT
            yield Step("span", actor, kept, wall=call.started, span=call.id, parent=call.parent)

    def times(self, task: str) -> tuple[str, str]:
        """When the first call of a task began and the last one ended."""
        calls = self._calls.get(task, [])
        started = min((call.started for call in calls if call.started), default="")
        return started, max((call.ended for call in calls if call.ended), default="")

    def cost(self, task: str) -> float | None:
        """The log holds usage, no prices: a cost is unknown."""
        return None

    def _ordered(self, task: str) -> list[_Call]:
        return sorted(self._calls.get(task, []), key=lambda call: (call.started, call.order))


def read_log(archive: Archive, name: str) -> ModelLog:
    """The model log and the header of an upload; read once per archive. Raises ArchiveError."""
    known = archive.memo.get(f"hal-log:{name}")
    if isinstance(known, ModelLog):
        return known
    log = ModelLog()
    for member in archive.members(name, _STREAMED):
        head = member.path[0] if member.path else None
        if head == "raw_eval_results":
            continue
        if head != "raw_logging_results":
            log.header[str(head)] = member.value
        elif member.problem or not isinstance(member.value, dict):
            log.problems.append(unread(member, "a logged call is an object"))
        elif len(member.path) > 1 and isinstance(member.path[1], int):
            _add_weave(log, member.value, member.path[1])
        elif len(member.path) > 1:
            _add_task(log, str(member.path[1]), member.value)
    archive.memo[f"hal-log:{name}"] = log
    return log


def _add_weave(log: ModelLog, call: Mapping[str, Any], number: int) -> None:
    task = call.get("weave_task_id") or mapping(call.get("attributes")).get("weave_task_id")
    if task is None:
        return
    output, inputs = mapping(call.get("output")), mapping(call.get("inputs"))
    log.add(
        str(task),
        _Call(
            id=str(call.get("id") or f"call {number}"),
            parent=str(call["parent_id"]) if call.get("parent_id") else None,
            op=_op(call),
            started=text(call.get("started_at")),
            ended=text(call.get("ended_at")),
            model=output.get("model") or inputs.get("model"),
            response=output.get("id"),
            usage=output.get("usage"),
            is_user=_of_user(inputs.get("messages")),
            executed=_answers(output),
            order=-number,  # the newest stands first
            exception=call.get("exception"),
            tier=output.get("service_tier"),
        ),
    )


def _op(call: Mapping[str, Any]) -> str:
    """weave writes op names as references: the name is the last part before the version."""
    return str(call.get("op_name") or call.get("display_name") or "").rpartition("/")[2].partition(":")[0]


def _of_user(messages: Any) -> bool:
    first = mapping(listed(messages)[0]) if listed(messages) else {}
    return _USER_PROMPT in str(first.get("content"))


def _answers(output: Mapping[str, Any]) -> list[Call]:
    """What a model's answer makes the agent do: its tool calls, or a message to the user."""
    message = mapping(mapping((listed(output.get("choices")) or [None])[0]).get("message"))
    return _done(message)


def _done(message: Mapping[str, Any]) -> list[Call]:
    calls = [mapping(mapping(call).get("function")) for call in listed(message.get("tool_calls"))]
    if calls:
        # tau-bench carries out the first call of an answer only.
        return [(str(calls[0].get("name")), parsed(calls[0].get("arguments")))]
    content = message.get("content")
    return [("respond", {"content": content})] if content is not None else []


def _add_task(log: ModelLog, task: str, value: Mapping[str, Any]) -> None:
    messages = [mapping(message) for message in listed(value.get("messages"))]
    executed = [call for message in messages if message.get("role") == "assistant" for call in _done(message)]
    metadata = [mapping(entry) for entry in listed(value.get("call_metadata"))]
    for number, entry in enumerate(metadata or [{}]):
        log.add(
            task,
            _Call(
                id=f"{task}/{number}",
                parent=None,
                op="",
                started=text(entry.get("started_at")),
                ended=text(entry.get("ended_at")),
                model=value.get("model"),
                response=None,
                usage=entry.get("usage"),
                is_user=False,
                executed=executed if number == 0 and not _of_user(messages) else [],
                order=number,
            ),
        )
    if len(metadata) > 1:
        log.problems += _repeated(task, metadata)


def _repeated(task: str, metadata: list[Mapping[str, Any]]) -> list[Finding]:
    """Entries of equal usage whose times lie within each other: one response, recorded by a call and its child."""
    nested = 0
    for outer in metadata:
        start, end = text(outer.get("started_at")), text(outer.get("ended_at"))
        for inner in metadata:
            same = inner is not outer and inner.get("usage") == outer.get("usage")
            nested += bool(
                same and start and start <= text(inner.get("started_at")) and text(inner.get("ended_at")) <= end
            )
    if not nested:
        return []
    what = f"{nested} entries of call_metadata have the usage of another whose time they lie in: billed twice if summed"
    return [Finding(rule="usage.nested", place=f"raw_logging_results.{task}", what=what, remedy="bill the outer ones")]
