"""ATIF trajectories (agent trajectory interchange format, 1.0 to 1.8): single files, or a list of them.

A trajectory holds what was done, never a verdict: episodes are ungraded, unless a Harbor trial around them says more.
Whatever of a step has no place of its own in our events is kept under `atif`, so that exporting gives the same
trajectory again. Embedded sub-agents come as steps of their own, marked with their trajectory's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import documents, listed, mapping, unread
from harness.importers.shape import shape
from harness.importers.steps import number, text
from harness.records.archive import (
    ArchiveEpisode,
    ArchiveError,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    Finding,
    ImportOptions,
    Recognition,
    Step,
)
from harness.records.vocabulary import Actor, Phase, Reason

MISSING = ("a verdict", "why the agent stopped", "the task's id and definition")
VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_ACTORS = {"agent": Actor.AGENT, "user": Actor.USER, "system": Actor.HARNESS}
_OWN_PLACE = frozenset({"step_id", "timestamp", "source", "message", "tool_calls", "observation", "metrics"})
_USUAL = ("schema_version", "agent", "steps")
_LOOKED_AT = 500  # files, to tell the format


@dataclass(frozen=True)
class AtifImporter:
    """An :class:`harness.protocols.Importer` for ATIF."""

    name: str = "atif"

    def recognises(self, archive: Archive) -> Recognition | None:
        if not any(_looks(archive, name) for name in _json_files(archive)[:_LOOKED_AT]):
            return None
        return Recognition(self.name, "ATIF: files with a trajectory", 1, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        known: set[str] = set()
        for found in documents(archive, _files(archive), check_version):
            if isinstance(found, Finding):
                yield found
                continue
            source, value = found.source, found.value
            if not is_trajectory(value):
                yield unread(Member((), None, source), "a trajectory needs schema_version, agent and steps")
                continue
            run = _run(value)
            if run.key not in known:
                known.add(run.key)
                yield run
            yield _episode(run.key, Member((), value, source))


def _json_files(archive: Archive) -> list[str]:
    return [name for name in archive.names if name.endswith((".json", ".json.gz"))] or list(archive.names)


def _files(archive: Archive) -> list[str]:
    """The files with a trajectory."""
    return [name for name in _json_files(archive) if _looks(archive, name)]


def _looks(archive: Archive, name: str) -> bool:
    found = shape(archive, name)
    version = found.fields.get("schema_version")
    return found.kind == "object" and isinstance(version, str) and version.startswith("ATIF-")


def check_version(value: Any, place: str) -> None:
    """Raises ArchiveError for a trajectory of a version that is not known."""
    version = mapping(value).get("schema_version")
    if isinstance(version, str) and version.startswith("ATIF-") and version not in VERSIONS:
        raise ArchiveError(
            f"schema_version {version} is not known; this version reads up to {VERSIONS[-1]}",
            place=f"{place}: schema_version",
            remedy="use a newer Assay",
        )


def is_trajectory(value: Any) -> bool:
    """Whether a value is a trajectory with steps."""
    return (
        isinstance(value, dict)
        and all(name in value for name in _USUAL)
        and isinstance(value["agent"], dict)
        and isinstance(value["steps"], list)
        and all(isinstance(step, dict) for step in value["steps"])
    )


def _run(value: Mapping[str, Any]) -> ArchiveRun:
    agent = mapping(value.get("agent"))
    model = text(agent.get("model_name")) or None
    name = text(agent.get("name")) or None
    return ArchiveRun(
        key=f"{name or ''} {model or ''}".strip() or "run", suite="atif", scaffold=name, model=model, missing=MISSING
    )


def _episode(run: str, member: Member) -> ArchiveEpisode:
    value = member.value
    label = text(value.get("trajectory_id")) or text(value.get("session_id")) or member.source.file
    times = [text(step.get("timestamp")) for step in value["steps"] if step.get("timestamp")]
    return ArchiveEpisode(
        run=run,
        task=ArchiveTask(label, first_message(value)),
        source=member.source,
        reason=Reason.VERDICT_MISSING,
        detail="a trajectory alone holds no verdict",
        grading=Claim(value="no", basis=Basis.STATED, evidence="ATIF has no place for a verdict"),
        attribution=Claim(value="by source", basis=Basis.STATED, evidence="steps name their source"),
        steps=lambda: atif_steps(value),
        cost_usd=number(mapping(value.get("final_metrics")).get("total_cost_usd")),
        step_count=sum(step.get("source") == "agent" for step in value["steps"]),
        started=min(times, default=""),
        finished=max(times, default=""),
        expects_usage=True,
        stated={"atif": envelope(value)},
        findings=tuple(totals(value, member.source.file)),
    )


def envelope(value: Mapping[str, Any]) -> dict[str, Any]:
    """A trajectory without its steps: what the export puts around them again."""
    return {key: item for key, item in value.items() if key != "steps"}


def first_message(value: Mapping[str, Any]) -> str:
    """What the agent was asked: the first message of a user."""
    for step in listed(value.get("steps")):
        if mapping(step).get("source") == "user":
            return text(mapping(step).get("message"))
    return ""


def totals(value: Mapping[str, Any], place: str) -> Iterator[Finding]:
    """Final metrics that are not the sums of the steps' own. Copied context was counted where it was copied from."""
    final = mapping(value.get("final_metrics"))
    steps = [step for step in listed(value.get("steps")) if not mapping(step).get("is_copied_context")]
    if value.get("subagent_trajectories"):
        return
    for total, part in (
        ("total_prompt_tokens", "prompt_tokens"),
        ("total_completion_tokens", "completion_tokens"),
        ("total_cost_usd", "cost_usd"),
    ):
        said = number(final.get(total))
        metrics = [mapping(mapping(step).get("metrics")) for step in steps if mapping(step).get("source") == "agent"]
        parts = [number(metric.get(part)) for metric in metrics]
        if said is None or not parts or any(value is None for value in parts):
            continue
        found = sum(value for value in parts if value is not None)
        if abs(found - said) > max(1e-6, 0.005 * abs(said)):
            yield Finding(
                rule="totals.usage", place=f"{place}: final_metrics.{total}", what=f"{said:g}, its steps give {found:g}"
            )


def atif_steps(value: Mapping[str, Any], agent: Actor = Actor.AGENT) -> list[Step]:
    """The steps of a trajectory and of those embedded in it."""
    steps = [step for item in value["steps"] for step in _of_step(item, mapping(value.get("agent")), agent, None)]
    for embedded in map(mapping, listed(value.get("subagent_trajectories"))):
        name = text(embedded.get("trajectory_id")) or "subagent"
        for item in map(mapping, listed(embedded.get("steps"))):
            steps += _of_step(item, mapping(embedded.get("agent")), agent, name)
    return steps


def _of_step(item: Mapping[str, Any], who: Mapping[str, Any], agent: Actor, below: str | None) -> Iterator[Step]:
    """The events of one step. The message comes first and carries what else the step says."""
    source, wall = str(item.get("source")), text(item.get("timestamp"))
    actor = agent if source == "agent" else _ACTORS.get(source, Actor.HARNESS)
    mark: dict[str, Any] = {"step": item.get("step_id")} | ({"subagent": below} if below else {})
    rest = {key: value for key, value in item.items() if key not in _OWN_PLACE}
    if source not in _ACTORS:
        rest["source"] = source
    lists = {name: True for name in ("tool_calls", "observation") if name in item}
    first = {"content": item.get("message"), "atif": mark | {"rest": rest, "has": lists}}
    yield Step("message", actor, first, Phase.INTERACTION, wall)
    metrics = item.get("metrics")
    if source == "agent" and not item.get("is_copied_context") and item.get("llm_call_count") != 0:
        yield _model_call(item, who, metrics, actor, mark, wall)
    elif metrics is not None:
        yield Step("metrics", actor, {"atif": mark, "metrics": metrics}, Phase.INTERACTION, wall)
    for call in map(mapping, listed(item.get("tool_calls"))):
        payload = {
            "gen_ai.tool.name": call.get("function_name"),
            "gen_ai.tool.call.id": call.get("tool_call_id"),
            "arguments": call.get("arguments"),
        }
        extra = {"extra": call["extra"]} if "extra" in call else {}
        yield Step("tool.call", actor, payload | {"atif": mark | extra}, Phase.INTERACTION, wall)
    for result in map(mapping, listed(mapping(item.get("observation")).get("results"))):
        known = {key: value for key, value in result.items() if key not in ("content", "source_call_id")}
        payload = {"atif": mark | ({"rest": known} if known else {})}
        if "content" in result:
            payload["content"] = result["content"]
        if "source_call_id" in result:
            payload["gen_ai.tool.call.id"] = result["source_call_id"]
        yield Step("tool.result", Actor.ENVIRONMENT, payload, Phase.INTERACTION, wall)


def _model_call(
    item: Mapping[str, Any], who: Mapping[str, Any], metrics: Any, actor: Actor, mark: dict[str, Any], wall: str
) -> Step:
    raw = mapping(metrics)
    payload: dict[str, Any] = {"atif": mark}
    model = item.get("model_name") or who.get("model_name")
    if model:
        payload["gen_ai.response.model"] = model
    if metrics is not None:
        payload["metrics"] = metrics
    if raw.get("prompt_tokens") is not None or raw.get("completion_tokens") is not None:
        payload["usage_raw"] = chat_usage(
            raw.get("prompt_tokens"), raw.get("cached_tokens"), raw.get("completion_tokens")
        )
    cost = number(raw.get("cost_usd"))
    if cost is not None and cost >= 0:
        payload["cost_usd"] = cost
    return Step("model.call", actor, payload, Phase.INTERACTION, wall)


def chat_usage(prompt: Any, cached: Any, completion: Any) -> dict[str, Any]:
    """Counts whose input includes what was cached, in the dialect that means that."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return usage if cached is None else usage | {"prompt_tokens_details": {"cached_tokens": cached}}
