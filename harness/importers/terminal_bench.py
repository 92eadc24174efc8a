"""Terminal-Bench 1 runs: `results.json` of a run or of single trials, with `run_metadata.json` beside it.

`is_resolved` is null where nothing was graded, and in older files false there too: then `failure_mode` or missing test
results say so. An agent's time-out is a stop, not a verdict: such a trial was graded and may have passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.consistency import instant
from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import document, documents, mapping, unread
from harness.importers.shape import Shape, named, only_file, shape
from harness.importers.steps import count, text, verdict
from harness.records.archive import (
    ArchiveEpisode,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    Finding,
    ImportOptions,
    Recognition,
)
from harness.records.vocabulary import Outcome, Reason, StopReason

MISSING = ("what was done and said (recordings and logs stay in the archive)", "cost", "image digests")
_STREAMED = frozenset({"results"})
_RECORD = ("task_id", "is_resolved", "trial_name")
_UNGRADED = {
    "test_timeout": Reason.GRADER_TIMEOUT,
    "parse_error": Reason.VERDICT_MALFORMED,
    "agent_installation_failed": Reason.SETUP_FAILED,
}
_ATTEMPT = re.compile(r"\.([0-9]{1,6})-of-[0-9]{1,6}\.")
_STOPS = {
    "none": StopReason.FINISHED,
    "agent_timeout": StopReason.TIME,
    "context_length_exceeded": StopReason.TOKENS,
    "output_length_exceeded": StopReason.TOKENS,
    "fatal_llm_parse_error": StopReason.SOLVER_ERROR,
    "unknown_agent_error": StopReason.SOLVER_ERROR,
    "agent_installation_failed": StopReason.INFRASTRUCTURE,
}


@dataclass(frozen=True)
class TerminalBenchImporter:
    """An :class:`harness.protocols.Importer` for Terminal-Bench 1."""

    name: str = "terminal-bench"

    def recognises(self, archive: Archive) -> Recognition | None:
        for name in _candidates(archive)[:20]:
            found = shape(archive, name)
            if _is_run(found):
                return Recognition(self.name, "a Terminal-Bench 1 run: results with is_resolved", 2, MISSING)
            if found.has(*_RECORD):
                return Recognition(self.name, "Terminal-Bench 1 trials: records with is_resolved", 1, MISSING)
        return None

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        shapes = {name: shape(archive, name) for name in _candidates(archive)}
        runs = [name for name, found in shapes.items() if _is_run(found)]
        alone = [name for name, found in shapes.items() if found.has(*_RECORD)]
        for name in runs:
            yield from _read_run(archive, name)
        if not runs:
            yield from _read_trials(archive, alone)


def _candidates(archive: Archive) -> list[str]:
    one = only_file(archive)
    return [one] if one else named(archive.names, "results.json")


def _is_run(found: Shape) -> bool:
    return found.stopped_at == "results" and found.first_has(*_RECORD)


def _read_run(archive: Archive, name: str) -> Iterator[ArchiveItem]:
    folder = name.rpartition("/")[0]
    metadata = _metadata(archive, f"{folder}/run_metadata.json".lstrip("/"))
    run = _run(folder or "run", metadata)
    yield run
    repeats: Counter[str] = Counter()
    for member in archive.members(name, _STREAMED):
        if member.path and member.path[0] != "results":
            if member.path[0] in ("accuracy", "n_resolved"):
                key = "n_passed" if member.path[0] == "n_resolved" else "accuracy"
                yield ArchiveRun(key=run.key, suite=run.suite, stated={key: member.value})
        elif member.problem or not _is_record(member.value):
            yield unread(member, "a trial needs task_id, trial_name and is_resolved")
        else:
            yield _episode(run.key, member, _repeat(member.value, repeats))


def _read_trials(archive: Archive, names: list[str]) -> Iterator[ArchiveItem]:
    folder = names[0].split("/")[0] if names and "/" in names[0] else ""
    metadata = _metadata(archive, "run_metadata.json")
    run = _run(folder or "run", metadata)
    yield run
    repeats: Counter[str] = Counter()
    for found in documents(archive, names):
        if isinstance(found, Finding):
            yield found
            continue
        source, value = found.source, found.value
        if not _is_record(value):
            yield unread(Member((), None, source), "a trial needs task_id, trial_name and is_resolved")
            continue
        yield _episode(run.key, Member((), value, source), _repeat(value, repeats))


def _repeat(value: Mapping[str, Any], seen: Counter[str]) -> int:
    """Which attempt at its task a trial is: its name says so (`hello.2-of-5.run`), since they end in any order."""
    named = _ATTEMPT.search(text(value["trial_name"]))
    if named is not None and int(named[1]) > 0:
        return int(named[1]) - 1
    seen[str(value["task_id"])] += 1
    return seen[str(value["task_id"])] - 1


def _metadata(archive: Archive, name: str) -> Mapping[str, Any]:
    return mapping(document(archive, name)[1]) if name in archive else {}


def _run(key: str, metadata: Mapping[str, Any]) -> ArchiveRun:
    dataset, version = metadata.get("dataset_name"), metadata.get("dataset_version")
    attempts = metadata.get("n_attempts")
    return ArchiveRun(
        key=key,
        suite=f"{dataset} {version or ''}".strip() if dataset else "terminal-bench",
        scaffold=text(metadata.get("agent_name")) or None,
        model=text(metadata.get("model_name")) or None,
        created=text(metadata.get("start_time")),
        tasks=tuple(str(task) for task in metadata.get("task_ids") or ()),
        repeats=attempts if isinstance(attempts, int) and attempts > 0 else None,
        stated={key: metadata[key] for key in ("run_id", "commit_hash", "agent_kwargs") if key in metadata},
        missing=MISSING,
    )


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and all(name in value for name in _RECORD)


def _episode(run: str, member: Member, repeat: int) -> ArchiveEpisode:
    value = member.value
    mode = str(value.get("failure_mode") or "unset")
    outcome, reason, detail, reward, grading = _graded(value, mode)
    tests = mapping(value.get("parser_results"))
    ended = mode == "unset" and bool(value.get("agent_ended_at")) and bool(tests)
    return ArchiveEpisode(
        run=run,
        task=ArchiveTask(str(value["task_id"]), text(value.get("instruction"))),
        source=member.source,
        repeat=repeat,
        outcome=outcome,
        reason=reason,
        detail=detail,
        reward=reward,
        criteria={str(name): float(word == "passed") for name, word in tests.items()},
        stop=StopReason.FINISHED if ended else _STOPS.get(mode, StopReason.UNKNOWN),
        stop_detail=mode,
        grading=grading,
        termination=_termination(mode, ended=ended),
        usage=_usage(value),
        started=text(value.get("agent_started_at") or value.get("trial_started_at")),
        finished=text(value.get("agent_ended_at") or value.get("trial_ended_at")),
        seconds=_seconds(value),
        expects_usage=True,
        stated={"trial_name": value.get("trial_name"), "recording": value.get("recording_path")},
    )


def _termination(mode: str, *, ended: bool) -> Claim:
    """A trial in which nothing went wrong keeps the mode that it began with, `unset`."""
    if ended:
        evidence = "failure_mode is unset, the agent's end is recorded, and tests have results"
        return Claim(value="finished", basis=Basis.INFERRED, evidence=evidence)
    return Claim(value=mode, basis=Basis.STATED, evidence="failure_mode") if mode != "unset" else Claim()


def _seconds(value: Mapping[str, Any]) -> float | None:
    """Between the agent's beginning and its end."""
    begun, ended = instant(text(value.get("agent_started_at"))), instant(text(value.get("agent_ended_at")))
    return (ended - begun).total_seconds() if begun is not None and ended is not None else None


def _usage(value: Mapping[str, Any]) -> dict[str, int] | None:
    """Totals of a trial; zero on both sides means that the agent did not count."""
    prompt, completion = count(value.get("total_input_tokens")), count(value.get("total_output_tokens"))
    if prompt is None or completion is None or prompt + completion == 0:
        return None
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def _graded(value: Mapping[str, Any], mode: str) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
    resolved, tests = value.get("is_resolved"), value.get("parser_results")
    if mode in _UNGRADED and resolved is not True:
        claim = Claim(value="no", basis=Basis.STATED, evidence=f"failure_mode is {mode}")
        return (
            Outcome.UNGRADED,
            _UNGRADED[mode],
            f"failure_mode is {mode}: no verdict, whatever is_resolved says",
            None,
            claim,
        )
    if resolved is None:
        claim = Claim(value="no", basis=Basis.STATED, evidence="is_resolved is null")
        reason = Reason.SOLVER_ERROR if mode == "unknown_agent_error" else Reason.VERDICT_MISSING
        return Outcome.UNGRADED, reason, f"is_resolved is null (failure_mode {mode})", None, claim
    outcome, reason_, detail, reward = verdict(resolved, "is_resolved")
    if resolved is False and not tests:
        claim = Claim(value="no", basis=Basis.INFERRED, evidence="is_resolved is false, and no test has a result")
        why = f"is_resolved is false without a single test result (failure_mode {mode})"
        return Outcome.UNGRADED, Reason.VERDICT_MISSING, why, None, claim
    evidence = f"is_resolved is {resolved}" + (f", {len(tests)} test results" if isinstance(tests, dict) else "")
    return outcome, reason_, detail, reward, Claim(value="yes", basis=Basis.STATED, evidence=evidence)
