"""tau2-bench results: one JSON file, or a folder with `results.json` beside `simulations/`.

Tasks are embedded as they were at run time, so the criteria's version comes along. There is no flag for the mode: it is
inferred from the user simulator's name and from who calls tools. A reward of 0 after an end that the grader does not
score normally is a verdict of the project's rules, and is marked as such; without `reward_info` nothing was graded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import documents, listed, mapping, unread
from harness.importers.shape import named, only_file, shape
from harness.importers.steps import answered, called, declared, model_call, number, said, text, verdict
from harness.importers.tau2_labels import Labels
from harness.importers.tau2_trace import trace_of
from harness.records.archive import (
    TRACE,
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
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason

MISSING = ("a flag for solo mode", "the version of the task data (the tasks themselves are embedded)")
_STREAMED = frozenset({"simulations"})
_KNOWN_VERSIONS = (None, 1, "1", "1.0")
_RUN = "run"
_STOPS = {
    "user_stop": StopReason.USER_ENDED,
    "agent_stop": StopReason.FINISHED,
    "max_steps": StopReason.STEPS,
    "too_many_errors": StopReason.SOLVER_ERROR,
    "timeout": StopReason.TIME,
    "agent_error": StopReason.SOLVER_ERROR,
    "user_error": StopReason.INFRASTRUCTURE,
    "infrastructure_error": StopReason.INFRASTRUCTURE,
    "context_window_exceeded": StopReason.TOKENS,
    "unexpected_error": StopReason.INFRASTRUCTURE,
}
_SCORED = ("user_stop", "agent_stop")
_ACTORS = {"assistant": Actor.AGENT, "user": Actor.USER}


@dataclass(frozen=True)
class Tau2Importer:
    """An :class:`harness.protocols.Importer` for tau2-bench."""

    name: str = "tau2"

    def recognises(self, archive: Archive) -> Recognition | None:
        header = _header_file(archive)
        if header is None:
            return None
        form = "one file" if only_file(archive) else "a folder with simulations/"
        return Recognition(self.name, f"tau2-bench results, {form}: info.environment_info and tasks", 2, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        name = _header_file(archive)
        if name is None:
            raise ArchiveError("no tau2 results here", place=str(archive.path), remedy="leave --format out")
        header = _header(archive, name)
        _check_version(header, archive.place(name))
        yield _run(header)
        results = _Results(header)
        for member in archive.members(name, _STREAMED | {"tasks"}):  # which the header holds already, all at once
            if member.path and member.path[0] != "simulations":
                if member.problem:
                    yield unread(member, "")
                elif member.path[0] == "format_version":  # it may stand behind the simulations
                    _check_version({"format_version": member.value}, archive.place(name))
            elif not member.path or len(member.path) == 2:
                yield results.episode(member)
        yield from _folder(archive, name, header, results)


def _header_file(archive: Archive) -> str | None:
    """The file with `info` and `tasks`."""
    one = only_file(archive)
    for name in (one,) if one else named(archive.names, "results.json")[:1]:
        found = shape(archive, name)
        info = found.fields.get("info")
        if found.kind == "object" and isinstance(info, dict) and "environment_info" in info and found.has("tasks"):
            return name
    return None


def _header(archive: Archive, name: str) -> dict[str, Any]:
    """All fields but the simulations, wherever in the file they stand."""
    header: dict[str, Any] = {}
    for member in archive.members(name, _STREAMED):
        if member.path and member.path[0] != "simulations":
            header[str(member.path[0])] = member.value
        elif "info" in header and "tasks" in header:
            break
    return header


def _check_version(header: Mapping[str, Any], place: str) -> None:
    version = header.get("format_version")
    if version not in _KNOWN_VERSIONS:
        raise ArchiveError(
            f"format_version {version!r} is not known; this version reads 1",
            place=f"{place}: format_version",
            remedy="use a newer Assay, or convert the results with the tau2 that wrote them",
        )


def _run(header: Mapping[str, Any]) -> ArchiveRun:
    info = mapping(header.get("info"))
    agent, user = mapping(info.get("agent_info")), mapping(info.get("user_info"))
    domain = mapping(info.get("environment_info")).get("domain_name")
    repeats = info.get("num_trials")
    stated = {
        key: info.get(key) for key in ("git_commit", "max_steps", "max_errors", "seed", "num_trials") if key in info
    }
    stated["user"] = {"implementation": user.get("implementation"), "llm": user.get("llm")}
    return ArchiveRun(
        key=_RUN,
        suite=f"tau2 {domain}" if domain else "tau2",
        scaffold=_name(agent.get("implementation")),
        model=_name(agent.get("llm")),
        created=text(header.get("timestamp")),
        tasks=tuple(str(task["id"]) for task in listed(header.get("tasks")) if isinstance(task, dict) and "id" in task),
        repeats=repeats if isinstance(repeats, int) and repeats > 0 else None,
        stated=stated,
        missing=MISSING,
    )


class _Results:
    """Turns simulations into episodes, with what the header says."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        tasks = [task for task in listed(header.get("tasks")) if isinstance(task, dict)]
        self.tasks = {str(task.get("id")): task for task in tasks}
        self.labels = Labels(tasks)
        info = mapping(header.get("info"))
        self.agent = str(mapping(info.get("agent_info")).get("implementation"))
        self.user = str(mapping(info.get("user_info")).get("implementation"))
        self.model = mapping(info.get("agent_info")).get("llm")

    def episode(self, member: Member) -> ArchiveEpisode | Finding:
        value = member.value
        if member.problem or not _is_simulation(value):
            return unread(member, "a simulation needs id, task_id, and messages or ticks that are lists")
        label, place = str(value["task_id"]), f"{member.source.file}, byte {member.source.offset} (id {value['id']})"
        messages = [message for message in listed(value.get("messages")) if isinstance(message, dict)]
        outcome, reason, detail, reward, grading = _graded(value)
        word = value.get("termination_reason")
        task = self.tasks.get(label)
        mode, contradiction = self._mode(value, messages, place)
        findings = [found for found in (self.labels.check(label, value, place), contradiction) if found is not None]
        findings += _reward_findings(value, place)
        trace = trace_of(
            value, messages, self.user, lambda some: len(_steps(some, None) if messages else _tick_steps(some))
        )
        if trace.broken is not None:
            findings.append(_trace_finding(place, trace.broken))
        agent_calls = [m for m in messages if m.get("role") == "assistant" and not _is_greeting(m)]
        return ArchiveEpisode(
            run=_RUN,
            task=ArchiveTask(label, _instruction(task), task),
            source=member.source,
            repeat=value["trial"] if isinstance(value.get("trial"), int) and value["trial"] >= 0 else 0,
            outcome=outcome,
            reason=reason,
            detail=detail,
            reward=reward,
            criteria=_criteria(value),
            stop=_STOPS.get(str(word), StopReason.UNKNOWN),
            stop_detail=str(word) if word is not None else "",
            grading=grading,
            termination=Claim(value=str(word), basis=Basis.STATED, evidence="termination_reason") if word else Claim(),
            mode=mode,
            attribution=Claim(
                value="by role", basis=Basis.STATED, evidence="messages name role and requestor; references stand apart"
            ),
            steps=lambda: _steps(messages, self.model) + _tick_steps(listed(value.get("ticks"))) + self._declared(task),
            cost_usd=_cost(value.get("agent_cost")),
            step_count=len(agent_calls) if messages else None,
            seconds=number(value.get("duration")),
            started=text(value.get("start_time")),
            finished=text(value.get("end_time")),
            stated={key: value.get(key) for key in ("id", "seed", "user_cost", "mode") if key in value}
            | {TRACE: trace.plain()},
            expects_usage=bool(messages),
            flags=tuple(f"{found.rule}: {found.what}" for found in findings),
            findings=tuple(findings),
        )

    @staticmethod
    def _declared(task: Mapping[str, Any] | None) -> list[Step]:
        return declared(mapping(mapping(task).get("evaluation_criteria")).get("actions"), arguments="arguments")

    def _mode(
        self, value: Mapping[str, Any], messages: list[dict[str, Any]], place: str
    ) -> tuple[Claim, Finding | None]:
        if value.get("mode") == "full_duplex" or "ticks" in value:
            return Claim(value="full_duplex", basis=Basis.STATED, evidence="mode and ticks of the simulation"), None
        users = [message for message in messages if message.get("role") == "user"]
        if self.user == "dummy_user":
            claim = Claim(value="solo", basis=Basis.INFERRED, evidence="info.user_info.implementation is dummy_user")
            if users:
                what = f"the header names a dummy user, but {len(users)} messages are a user's"
                return _contradicted(claim, "no solo episode"), _header_finding(place, what)
            return claim, None
        if not messages:
            return Claim(), None
        if "solo" in self.agent:
            what = f"the header names the agent {self.agent} with the user {self.user}"
            return Claim(value="normal", basis=Basis.AMBIGUOUS, evidence=what), _header_finding(place, what)
        if any(message.get("tool_calls") for message in users):
            return Claim(value="dual_control", basis=Basis.INFERRED, evidence="user messages carry tool_calls"), None
        return Claim(
            value="normal", basis=Basis.INFERRED, evidence=f"user {self.user}; no user message calls a tool"
        ), None


def _contradicted(claim: Claim, what: str) -> Claim:
    return Claim(value=claim.value, basis=Basis.AMBIGUOUS, evidence=f"{claim.evidence}; the messages say {what}")


def _header_finding(place: str, what: str) -> Finding:
    return Finding(rule="header.mode", place=place, what=what, remedy="find out how it was run before replaying it")


def _trace_finding(place: str, broken: tuple[int, str]) -> Finding:
    at, what = broken
    return Finding(
        rule="record.trace", place=f"{place}, step {at}", what=what, remedy="get the record as it was written"
    )


def _is_simulation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "id" in value
        and "task_id" in value
        and (isinstance(value.get("messages"), list) or isinstance(value.get("ticks"), list))
    )


def _graded(value: Mapping[str, Any]) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
    reward_info = value.get("reward_info")
    if not isinstance(reward_info, Mapping):
        claim = Claim(value="no", basis=Basis.INFERRED, evidence="reward_info is absent or null")
        return Outcome.UNGRADED, Reason.VERDICT_MISSING, "reward_info is absent: the grader did not run", None, claim
    outcome, reason, detail, reward = verdict(reward_info.get("reward"), "reward_info.reward")
    word = value.get("termination_reason")
    if word == "infrastructure_error":
        claim = Claim(value="no", basis=Basis.STATED, evidence="termination_reason is infrastructure_error")
        return Outcome.UNGRADED, Reason.ENGINE_ERROR, "an infrastructure fault; its 0 is no verdict", None, claim
    evidence = "reward_info is there"
    if word is not None and word not in _SCORED and outcome is Outcome.FAILED:
        evidence += f"; it is the 0 that the rules give for {word}, and the end state was not looked at"
        detail = f"0 by rule for {word}"
    return (
        outcome,
        reason,
        detail,
        reward,
        Claim(value="yes" if reason is None else "no", basis=Basis.STATED, evidence=evidence),
    )


def _criteria(value: Mapping[str, Any]) -> dict[str, float]:
    parts = mapping(mapping(value.get("reward_info")).get("reward_breakdown"))
    found = {str(name): number(part) for name, part in parts.items()}
    return {name: part for name, part in found.items() if part is not None}


def _reward_findings(value: Mapping[str, Any], place: str) -> list[Finding]:
    """The reward is the product of its parts."""
    reward, parts = number(mapping(value.get("reward_info")).get("reward")), _criteria(value)
    if reward is None or not parts:
        return []
    product = 1.0
    for part in parts.values():
        product *= part
    if abs(product - reward) <= 1e-9:
        return []
    what = f"reward {reward:g}, but the product of its parts is {product:g}"
    return [Finding(rule="reward.parts", place=place, what=what, evidence=str(parts), remedy="grade it again")]


def _cost(value: Any) -> float | None:
    cost = number(value)
    return cost if cost is not None and cost >= 0 else None


def _is_greeting(message: Mapping[str, Any]) -> bool:
    """The first message of an episode, put there by the orchestrator."""
    return message.get("turn_idx") == 0 and not message.get("usage") and not message.get("tool_calls")


def _steps(messages: Sequence[Mapping[str, Any]], model: Any) -> list[Step]:
    steps: list[Step] = []
    for message in messages:
        role, wall = message.get("role"), text(message.get("timestamp"))
        if role == "tool":
            steps.append(answered(message.get("content"), message.get("id"), message.get("error"), wall))
            continue
        actor = _ACTORS.get(str(role), Actor.HARNESS)
        if actor is Actor.AGENT and not _is_greeting(message):
            steps.append(
                model_call(model=model, usage=message.get("usage"), cost_usd=_cost(message.get("cost")), wall=wall)
            )
        if actor is Actor.AGENT and _is_greeting(message):
            actor = Actor.HARNESS
        if message.get("content") is not None:
            steps.append(said(actor, message["content"], wall))
        for call in listed(message.get("tool_calls")):
            steps.append(called(actor, call.get("name"), call.get("arguments"), call.get("id"), wall))
    return steps


def _tick_steps(ticks: Sequence[Any]) -> list[Step]:
    """What was said in a voice episode, tick by tick; ticks in which nobody spoke are counted in the source only."""
    steps: list[Step] = []
    for tick in ticks:
        for key, actor in (("agent_chunk", Actor.AGENT), ("user_chunk", Actor.USER)):
            chunk = mapping(mapping(tick).get(key))
            content = chunk.get("content")
            if content:
                steps.append(said(actor, content, text(mapping(tick).get("timestamp"))))
            elif chunk.get("contains_speech"):
                steps.append(said(actor, None, text(mapping(tick).get("timestamp"))))
    return steps


def _instruction(task: Mapping[str, Any] | None) -> str:
    scenario = mapping(mapping(task).get("user_scenario")).get("instructions")
    if isinstance(scenario, Mapping):
        return "\n".join(f"{key}: {value}" for key, value in scenario.items() if value)
    return str(scenario or mapping(task).get("ticket") or "")


def _folder(archive: Archive, header_name: str, header: Mapping[str, Any], results: _Results) -> Iterator[ArchiveItem]:
    """The simulations of the folder form, one file each, and what its index lacks or has too much."""
    folder = f"{header_name.rpartition('/')[0]}/simulations".lstrip("/")
    files = {_stem(name): name for name in archive.below(folder)}
    index = header.get("simulation_index")
    if isinstance(index, list):
        listed = {str(entry.get("id") if isinstance(entry, Mapping) else entry) for entry in index}
        for id_ in sorted(listed ^ files.keys()):
            where = "has no file" if id_ in listed else "is not in simulation_index"
            yield Finding(
                rule="archive.inventory", place=archive.place(header_name), what=f"simulation {id_!r} {where}"
            )
    for found in documents(archive, files.values()):
        yield found if isinstance(found, Finding) else results.episode(Member((), found.value, found.source))


def _stem(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".gz").removesuffix(".json")


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
