"""HAL uploads: `raw_eval_results` of tau-bench runs with the model log, and bare action lists of the same shape.

`taken_actions` mixes the agent's actions with the grader's replay of the reference, without a mark of either;
:mod:`harness.importers.attribution` tells them apart. The reward is the environment's attribute at the end, a plain 0
where no step ever graded: evidence of grading is a replay that was found, or a reward above 0. The model log is in
:mod:`harness.importers.hal_log`; encrypted uploads have to be decrypted first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.importers.attribution import Attribution, Call, Confidence, attribute
from harness.importers.container import Archive
from harness.importers.hal_log import ModelLog, read_log
from harness.importers.hal_sources import actions_of, executed_of, references_of
from harness.importers.json_stream import Every, Member
from harness.importers.reports import mapping, unread
from harness.importers.shape import Shape, only_file, shape
from harness.importers.steps import number, said, text, verdict
from harness.records.archive import (
    DOUBT,
    TRACE,
    ArchiveEpisode,
    ArchiveError,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    Fault,
    ImportOptions,
    Recognition,
    Step,
    Trace,
)
from harness.records.vocabulary import Actor, Outcome, Phase, Reason, StopReason

MISSING = ("actors in taken_actions", "a mark of grading", "user messages and tool answers", "why an episode ended")
_STREAMED = frozenset({"raw_eval_results", "raw_logging_results"})
_BASIS = {
    Confidence.MATCHED: Basis.INFERRED,
    Confidence.STRUCTURAL: Basis.INFERRED,
    Confidence.AMBIGUOUS: Basis.AMBIGUOUS,
    Confidence.NONE: Basis.UNKNOWN,
}


@dataclass(frozen=True)
class HalImporter:
    """An :class:`harness.protocols.Importer` for HAL uploads and for bare sets of action lists."""

    name: str = "hal"

    def recognises(self, archive: Archive) -> Recognition | None:
        if any(name.endswith(".encrypted") for name in archive.names[:50]):
            return Recognition(self.name, "an encrypted HAL upload", 2, ("everything, until it is decrypted",))
        name = only_file(archive)
        found = shape(archive, name) if name else None
        if found is None or found.kind != "object":
            return None
        if found.has("raw_eval_results") or (found.has("config") and found.has("raw_logging_results")):
            return Recognition(self.name, "a HAL upload: raw_eval_results with the model log", 2, MISSING)
        if _sets(found):
            what = "HAL-like action lists: {reward, taken_actions} by task and trial, without tasks or model log"
            return Recognition(self.name, what, 1, (*MISSING, "tasks: give --reference", "model log: give --executed"))
        return None

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        if any(name.endswith(".encrypted") for name in archive.names[:50]):
            raise ArchiveError(
                "the upload is encrypted", place=str(archive.path), remedy="decrypt it with HAL's own tool, then import"
            )
        for name in archive.names:
            found = shape(archive, name)
            if _sets(found):
                yield from _read_sets(archive, name, options)
            else:
                yield from _read_upload(archive, name, options)


def _sets(found: Shape) -> bool:
    """Whether every field looks like {key: {reward, taken_actions}}."""
    values = [*found.fields.values()]
    if isinstance(found.first, dict):
        values.append({found.first.get("key"): found.first.get("value")} if "key" in found.first else found.first)
    first = next((entry for value in values if isinstance(value, dict) for entry in value.values()), None)
    return isinstance(first, dict) and "taken_actions" in first and not found.has("raw_eval_results")


def _read_sets(archive: Archive, name: str, options: ImportOptions) -> Iterator[ArchiveItem]:
    references, executed = references_of(options), executed_of(options)
    known: set[str] = set()
    for member in archive.members(name, Every()):
        key = str(member.path[0]) if member.path else ""
        if key and key not in known and not (member.problem and len(member.path) == 1):
            known.add(key)
            yield ArchiveRun(key=key, suite=f"HAL-like {key}", missing=MISSING)
        if member.problem or len(member.path) < 2 or not _is_entry(member.value):
            yield unread(member, "an object of {reward, taken_actions} by task and trial")
            continue
        task, _, trial = str(member.path[1]).partition("/")
        repeat = int(trial) if trial.isascii() and trial.isdigit() else 0
        calls = executed.get((task, repeat)) if executed is not None else None
        yield _episode(_Entry(key, task, repeat, member.value, references.get(task), calls, None), member)


def _read_upload(archive: Archive, name: str, options: ImportOptions) -> Iterator[ArchiveItem]:
    log = read_log(archive, name)
    references, executed = references_of(options), executed_of(options)
    yield _run(log.header)
    yield from log.problems
    for member in archive.members(name, _STREAMED):
        if len(member.path) < 2 or member.path[0] != "raw_eval_results":
            if member.problem and not (member.path and member.path[0] == "raw_logging_results"):
                yield unread(member, "")
            continue
        task = str(member.path[1])
        entries = member.value if isinstance(member.value, list) else [member.value]
        for repeat, entry in enumerate(entries):
            if member.problem:
                yield unread(member, "")
            elif isinstance(entry, str):
                yield _crashed(task, repeat, entry, member, log)
            elif not _is_entry(entry):
                yield unread(member, "an entry needs reward and taken_actions")
            else:
                calls = log.executed(task) if executed is None else executed.get((task, repeat))
                own = mapping(entry.get("task"))
                definition = own if actions_of(own) is not None else references.get(task, own or None)
                yield _episode(_Entry("run", task, repeat, entry, definition, calls, log), member)


def _run(header: Mapping[str, Any]) -> ArchiveRun:
    config, results = mapping(header.get("config")), mapping(header.get("results"))
    arguments = mapping(config.get("agent_args"))
    usage = mapping(header.get("total_usage"))
    model = arguments.get("model_name") or (next(iter(usage)) if len(usage) == 1 else None)
    kept = ("accuracy", "total_cost", "successful_tasks", "failed_tasks")
    stated: dict[str, Any] = {key: results[key] for key in kept if key in results}
    stated |= {key: header[key] for key in ("total_usage", "total_cost", "git_info") if key in header}
    return ArchiveRun(
        key="run",
        suite=text(config.get("benchmark_name")) or "HAL",
        agent=text(config.get("agent_name")) or None,
        scaffold=text(config.get("agent_name")) or None,
        model=model if isinstance(model, str) else None,
        created=text(config.get("date")),
        stated=stated | {"run_id": config.get("run_id")},
        missing=MISSING,
    )


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and "reward" in entry
        and isinstance(entry.get("taken_actions"), list)
        and all(isinstance(action, dict) and "name" in action for action in entry["taken_actions"])
    )


@dataclass(frozen=True)
class _Entry:
    """One episode with all that is known of it from elsewhere."""

    run: str
    task: str
    repeat: int
    value: Mapping[str, Any]
    definition: Mapping[str, Any] | None  # the task: its own, or that of the file of references
    executed: Sequence[Call] | None
    log: ModelLog | None

    @property
    def reference(self) -> list[Call] | None:
        return actions_of(self.definition)


def _episode(entry: _Entry, member: Member) -> ArchiveEpisode:
    actions = [(str(action["name"]), action.get("kwargs")) for action in entry.value["taken_actions"]]
    reference = entry.reference
    found = attribute(actions, reference, entry.executed) if reference is not None else None
    outcome, reason, detail, reward, grading = _graded(entry.value.get("reward"), found, actions)
    task = mapping(entry.definition)
    usage_cost = entry.log.cost(entry.task) if entry.log is not None else None
    times = entry.log.times(entry.task) if entry.log is not None else ("", "")
    flags, doubt, trace = _flags(found), _doubt(found, entry.executed), _trace(found, actions, entry)
    return ArchiveEpisode(
        run=entry.run,
        task=ArchiveTask(entry.task, text(task.get("instruction")), entry.definition),
        source=member.source,
        repeat=entry.repeat,
        outcome=outcome,
        reason=reason,
        detail=detail,
        reward=reward,
        grading=grading,
        attribution=_claim(found),
        steps=lambda: _steps(actions, found, entry),
        cost_usd=usage_cost,
        started=times[0],
        finished=times[1],
        expects_usage=entry.log is not None,
        flags=flags,
        stated={"entry": f"{entry.run}/{entry.task}/{entry.repeat}"} | doubt | {TRACE: trace.plain()},
    )


def _claim(found: Attribution | None) -> Claim:
    if found is None:
        return Claim(value="unattributed", basis=Basis.UNKNOWN, evidence="no reference actions: give --reference")
    return Claim(value=found.confidence.value, basis=_BASIS[found.confidence], evidence=found.why)


def _doubt(found: Attribution | None, executed: Sequence[Call] | None) -> dict[str, str]:
    """Why it is not certain which of the list's calls are the agent's. A model log settles it, also where more than one
    place of the list fits: what the agent did is what was logged."""
    if found is None:
        why = "the reference is not known, and so not what of the list the grader did"
        return {DOUBT: f"{why}: --reference names a file of tasks"}
    if found.confidence is Confidence.AMBIGUOUS and found.grader and executed is None:
        return {DOUBT: f"{found.why}: --executed names an archive of what the agent did"}
    return {}


def _trace(found: Attribution | None, actions: Sequence[Call], entry: _Entry) -> Trace:
    """The model log as a witness: what the agent did stands in the list, in order; and no call beside it but the
    reference's. Messages may stand beside it: wrappers add some."""
    if found is None or entry.executed is None:
        return Trace()
    by, shows = ("model log",), (Fault.DROPPED, Fault.SWAPPED, Fault.ARGUMENT, Fault.END)
    wrong = [
        (at, f"{entry.executed[one][0]} was logged here") for one, at in zip(found.lost, found.lost_at, strict=True)
    ]
    strange = (at for at in found.strangers if actions[at][0] != "respond")
    wrong += [(at, f"{actions[at][0]} was not logged as it stands here") for at in strange]
    if not wrong:
        return Trace(by=by, shows=shows)
    at, what = min(wrong)
    spans = sum(1 for _ in entry.log.spans(entry.task)) if entry.log is not None else 0
    return Trace(by=by, shows=shows, broken=(spans + at, f"{what}, by the model log"))


def _flags(found: Attribution | None) -> tuple[str, ...]:
    if found is None:
        return ("actions not attributed: the reference is not known",)
    flags = []
    if len(found.copies) > 1:
        flags.append(f"reference actions injected {len(found.copies)} times: graded again on the reference's own state")
    if found.confidence is Confidence.AMBIGUOUS:
        flags.append(f"attribution is ambiguous: {found.why}")
    if found.lost:
        flags.append(f"{len(found.lost)} executed call(s) are missing from the action list")
    if found.strangers:
        flags.append(f"{len(found.strangers)} action(s) of neither the agent nor the reference")
    return tuple(flags)


def _graded(
    stored: Any, found: Attribution | None, actions: Sequence[Call]
) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
    outcome, reason, detail, reward = verdict(stored, "reward")
    if found is not None and len(found.copies) > 1 and found.confidence is not Confidence.AMBIGUOUS:
        why = f"graded {len(found.copies)} times, at last on the state that the reference itself had left"
        claim = Claim(value="yes", basis=Basis.INFERRED, evidence=f"{found.why} at {', '.join(map(str, found.copies))}")
        return Outcome.INVALID, Reason.VERDICT_CONFLICT, why, reward, claim
    if number(stored):
        evidence = f"reward is {stored!r}: only grading gives one above 0"
        return outcome, reason, detail, reward, Claim(value="yes", basis=Basis.INFERRED, evidence=evidence)
    if reason is not None:
        return outcome, reason, detail, reward, Claim(value="no", basis=Basis.STATED, evidence=detail)
    if found is not None and found.graded:
        evidence = f"{found.why} at {', '.join(str(at) for at in found.copies) or 'single places'}"
        basis = Basis.INFERRED if found.confidence is not Confidence.AMBIGUOUS else Basis.AMBIGUOUS
        return outcome, reason, detail, reward, Claim(value="yes", basis=basis, evidence=evidence)
    missing = (Outcome.UNGRADED, Reason.VERDICT_MISSING)
    if found is None:
        why = "reward is 0, and without the reference no replay of it can be seen"
        return *missing, why, None, Claim(basis=Basis.UNKNOWN, evidence=why)
    sure = found.confidence not in (Confidence.AMBIGUOUS, Confidence.NONE)
    why = f"reward is 0, and there is no evidence of grading: {found.why}"
    basis = Basis.INFERRED if sure else Basis.AMBIGUOUS
    return *missing, why, None, Claim(value="no" if sure else None, basis=basis, evidence=found.why)


def _steps(actions: Sequence[Call], found: Attribution | None, entry: _Entry) -> list[Step]:
    steps: list[Step] = list(entry.log.spans(entry.task)) if entry.log is not None else []
    for index, (name, arguments) in enumerate(actions):
        injected = found is not None and index in found.grader
        actor = Actor.GRADER if injected else Actor.AGENT
        phase = Phase.GRADING if injected else Phase.INTERACTION
        if name == "respond" and not injected:
            steps.append(said(actor, mapping(arguments).get("content")))
            continue
        payload = {"gen_ai.tool.name": name, "arguments": arguments, "index": index}
        steps.append(Step("tool.call", actor, payload, phase))
    for number_, (name, arguments) in enumerate(entry.reference or ()):
        payload = {"gen_ai.tool.name": name, "arguments": arguments, "index": number_}
        steps.append(Step("reference.action", Actor.REFERENCE, payload, Phase.GRADING))
    return steps


def _crashed(task: str, repeat: int, message: str, member: Member, log: ModelLog) -> ArchiveEpisode:
    """An episode of which only a text is left: nothing was graded, whatever the totals count it as."""
    timed_out = message.upper().startswith("TIMEOUT")
    return ArchiveEpisode(
        run="run",
        task=ArchiveTask(task),
        source=member.source,
        repeat=repeat,
        reason=Reason.HARNESS_ERROR,
        detail="the result is a text, not a verdict",
        stop=StopReason.TIME if timed_out else StopReason.UNKNOWN,
        stop_detail=message[:2000],
        grading=Claim(value="no", basis=Basis.STATED, evidence=f"the result is the text {message[:60]!r}"),
        steps=lambda: list(log.spans(task)),
        cost_usd=log.cost(task),
        expects_usage=True,
    )
