"""tau-bench v1 historical trajectories: a list of {task_id, trial, reward, info, traj}.

The stored reward is a plain 0 also where nothing was graded. Evidence of grading is `info.reward_info`, which only the
grading step writes, or a reward above zero. Why an episode ended is not stored; it is inferred from the last event, and
from the 30 model turns after which both of the project's agents give up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import unread
from harness.importers.shape import only_file, shape
from harness.importers.steps import answered, called, declared, model_call, number, parsed, said, verdict
from harness.records.archive import (
    TRACE,
    ArchiveEpisode,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    Fault,
    Finding,
    ImportOptions,
    Recognition,
    Step,
    Trace,
)
from harness.records.vocabulary import Actor, Outcome, Phase, Reason, StopReason

MISSING = ("agent and model", "date", "why an episode ended", "token usage", "the agent's cost", "tool definitions")
TURNS = 30  # of a model, in tau-bench's own loops
STOP_TOKEN = "###STOP###"
TRANSFER = "transfer_to_human_agents"
_RUN = "run"
_FIELDS = ("task_id", "trial", "reward", "info", "traj")


@dataclass(frozen=True)
class TauBenchImporter:
    """An :class:`harness.protocols.Importer` for tau-bench v1."""

    name: str = "tau-bench"

    def recognises(self, archive: Archive) -> Recognition | None:
        file = only_file(archive)
        found = shape(archive, file) if file else None
        if found is None or found.kind != "list" or not found.first_has(*_FIELDS):
            return None
        return Recognition(self.name, "tau-bench v1 trajectories: a list of episodes with info and traj", 2, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        yield ArchiveRun(key=_RUN, suite="tau-bench", missing=MISSING)
        for name in archive.names:
            for member in archive.members(name):
                if member.problem or not _is_episode(member.value):
                    yield unread(member, "an episode needs task_id, trial, info and traj")
                else:
                    yield _episode(member)


def _is_episode(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(name in value for name in _FIELDS)
        and isinstance(value["info"], dict)
        and isinstance(value["traj"], list)
        and all(isinstance(message, dict) for message in value["traj"])
        and isinstance(value["trial"], int)
    )


def _episode(member: Member) -> ArchiveEpisode:
    value = member.value
    info, traj = value["info"], value["traj"]
    task = info["task"] if isinstance(info.get("task"), dict) else {}
    outcome, reason, detail, reward, grading = _graded(value["reward"], info)
    stop, termination = _ended(info, traj, graded=reason is None)
    turns = sum(message.get("role") == "assistant" for message in traj)
    trace = _trace(info, traj)
    findings = _findings(member, trace)
    return ArchiveEpisode(
        run=_RUN,
        task=ArchiveTask(str(value["task_id"]), str(task.get("instruction", "")), task or None),
        source=member.source,
        repeat=value["trial"],
        outcome=outcome,
        reason=reason,
        detail=detail,
        reward=reward,
        stop=stop,
        stop_detail=str(info["error"]) if "error" in info else "",
        grading=grading,
        termination=termination,
        mode=Claim(value="normal", basis=Basis.INFERRED, evidence="only assistant messages in traj carry tool_calls")
        if traj
        else Claim(),
        attribution=Claim(
            value="by role", basis=Basis.STATED, evidence="traj holds no reference actions in this format"
        ),
        steps=lambda: _steps(traj, task),
        step_count=turns if traj else None,
        stated={
            "user_cost": info.get("user_cost"),
            "source": info.get("source"),
            "reward_info": info.get("reward_info"),
            TRACE: trace.plain(),
        },
        flags=tuple(f"{found.rule}: {found.what}" for found in findings),
        findings=findings,
    )


def _findings(member: Member, trace: Trace) -> tuple[Finding, ...]:
    if trace.broken is None:
        return ()
    at, what = trace.broken
    place = f"{member.source.file}, byte {member.source.offset}, step {at}"
    return (Finding(rule="record.trace", place=place, what=what, remedy="get the record as it was written"),)


def _trace(info: dict[str, Any], traj: list[dict[str, Any]]) -> Trace:
    """What is told twice: an answer names its tool, and `info.source` who gave the last observation."""
    broken: tuple[int, str] | None = None
    asked: dict[Any, str] = {}
    for number_, message in enumerate(traj):
        for call in message.get("tool_calls") or ():
            asked[call.get("id")] = str((call.get("function") or {}).get("name"))
        name, wanted = message.get("name"), asked.get(message.get("tool_call_id"))
        if message.get("role") == "tool" and name is not None and wanted is not None and name != wanted:
            broken = (number_, f"an answer of {name} to a call of {wanted}")
            break
    source = info.get("source")
    if not isinstance(source, str) or not traj:
        by: tuple[str, ...] = ()
    else:
        by, last = ("info.source",), traj[-1]
        if broken is None and source != (last.get("name") if last.get("role") == "tool" else last.get("role")):
            broken = (len(traj), f"info.source says that {source} spoke last, and that is not here")
    at = None if broken is None else (len(_steps(traj[: broken[0]], {})), broken[1])
    return Trace(by=by, shows=(Fault.END,) if by else (), broken=at)


def _graded(reward: Any, info: dict[str, Any]) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
    outcome, reason, detail, value = verdict(reward, "reward")
    if "error" in info:
        claim = Claim(value="no", basis=Basis.STATED, evidence="info holds an error and a traceback")
        return Outcome.UNGRADED, Reason.HARNESS_ERROR, "the runner crashed: info.error", None, claim
    if isinstance(info.get("reward_info"), dict):
        said_so = Claim(
            value="yes", basis=Basis.STATED, evidence="info.reward_info is there: the grading step wrote it"
        )
        return outcome, reason, detail, value, said_so
    if number(reward):
        claim = Claim(
            value="yes", basis=Basis.INFERRED, evidence=f"reward is {reward!r}: only grading gives one above 0"
        )
        return outcome, reason, detail, value, claim
    claim = Claim(value="no", basis=Basis.INFERRED, evidence="info.reward_info is null, and reward is the 0 of a step")
    why = "info.reward_info is null: the episode ended without the step that grades; its stored 0 is no verdict"
    return Outcome.UNGRADED, Reason.VERDICT_MISSING, why, None, claim


def _ended(info: dict[str, Any], traj: list[dict[str, Any]], *, graded: bool) -> tuple[StopReason, Claim]:
    last = traj[-1] if traj else {}
    turns = sum(message.get("role") == "assistant" for message in traj)

    def inferred(stop: StopReason, evidence: str) -> tuple[StopReason, Claim]:
        return stop, Claim(value=stop.value, basis=Basis.INFERRED, evidence=evidence)

    if "error" in info:
        return StopReason.INFRASTRUCTURE, Claim(value="error", basis=Basis.STATED, evidence="info.error")
    if last.get("role") == "user" and STOP_TOKEN in str(last.get("content")):
        return inferred(StopReason.USER_ENDED, f"the last message is the user's and holds {STOP_TOKEN}")
    if info.get("source") == TRANSFER or last.get("name") == TRANSFER:
        return inferred(StopReason.FINISHED, f"the last call is {TRANSFER}, which ends an episode")
    if not graded and turns >= TURNS:
        return inferred(
            StopReason.STEPS, f"{turns} model turns, the limit of the project's agents, and no ending event"
        )
    return StopReason.UNKNOWN, Claim()


def _steps(traj: list[dict[str, Any]], task: dict[str, Any]) -> list[Step]:
    steps: list[Step] = []
    for message in traj:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            steps.append(model_call())
            if content is not None:
                steps.append(said(Actor.AGENT, content))
            for call in message.get("tool_calls") or ():
                function = call.get("function") or {}
                steps.append(called(Actor.AGENT, function.get("name"), function.get("arguments"), call.get("id")))
        elif role == "tool":
            steps.append(answered(content, message.get("tool_call_id")))
        elif role == "system":
            steps.append(said(Actor.HARNESS, content, phase=Phase.SETUP))
        else:
            steps.append(said(Actor.USER, content))
    return steps + declared(task.get("actions"))


def executed(traj: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """What the agent did, in order, as (name, arguments): its tool calls, and its messages as `respond`."""
    done: list[tuple[str, Any]] = []
    for message in traj:
        if message.get("role") != "assistant":
            continue
        calls = message.get("tool_calls") or ()
        for call in calls:
            function = call.get("function") or {}
            done.append((str(function.get("name")), parsed(function.get("arguments"))))
        if not calls:
            done.append(("respond", {"content": message.get("content")}))
    return done
