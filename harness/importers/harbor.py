"""Harbor jobs and trials: `result.json` files, with ATIF trajectories and verifier output beside them.

A trial is graded when its verifier gave rewards, whatever exception it also met: an agent's time-out is a stop. Where
Harbor itself says that the rewards are not valid, they are no verdict. Retried attempts are deleted by Harbor, and with
them their cost: what a trial cost is a lower bound when the job counts retries.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.atif import atif_steps, chat_usage, check_version, envelope, first_message, is_trajectory, totals
from harness.importers.consistency import instant
from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import documents, listed, mapping, unread
from harness.importers.shape import named, shape
from harness.importers.steps import number, text, verdict
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
    Step,
)
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason

MISSING = ("image digests", "exit codes and durations of commands", "attempts before a retry, and their cost")
_TRAJECTORY = ["agent", "trajectory.json"]
_TRIAL = ("task_name", "trial_name", "agent_info")
_REFERENCE_AGENTS = frozenset({"oracle"})
_STOPS = {
    "AgentTimeoutError": StopReason.TIME,
    "CancelledError": StopReason.CANCELLED,
    "KeyboardInterrupt": StopReason.CANCELLED,
}
_OF_AGENT = ("Agent", "NonZeroAgentExitCode")
_OF_VERIFIER = {
    "VerifierTimeoutError": Reason.GRADER_TIMEOUT,
    "RewardFileNotFoundError": Reason.VERDICT_MISSING,
    "RewardFileEmptyError": Reason.VERDICT_EMPTY,
    "VerifierOutputParseError": Reason.VERDICT_MALFORMED,
}


@dataclass(frozen=True)
class HarborImporter:
    """An :class:`harness.protocols.Importer` for Harbor."""

    name: str = "harbor"

    def recognises(self, archive: Archive) -> Recognition | None:
        for name in named(archive.names, "result.json")[:50] or archive.names[:1]:
            found = shape(archive, name)
            if found.has(*_TRIAL):
                return Recognition(self.name, "a Harbor trial or job: result.json with agent_info", 2, MISSING)
        return None

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        names = named(archive.names, "result.json") or list(archive.names)
        known: set[str] = set()
        repeats: Counter[tuple[str, str]] = Counter()
        for found in documents(archive, names):
            if isinstance(found, Finding):
                yield found
                continue
            name, source, value = found.name, found.source, found.value
            if not isinstance(value, dict) or not all(field in value for field in _TRIAL):
                if not _is_job(value):
                    yield unread(Member((), None, source), "a trial needs task_name, trial_name and agent_info")
                continue
            if value.get("schema_version", 1) != 1:
                yield _version(value["schema_version"], archive.place(name))
                continue
            run = _run(value)
            if run.key not in known:
                known.add(run.key)
                yield run
            task = str(value["task_name"])
            trial = _Trial(archive, name.rpartition("/")[0], value)
            yield trial.episode(run.key, Member((), value, source), repeats[run.key, task])
            repeats[run.key, task] += 1


def _is_job(value: Any) -> bool:
    return isinstance(value, dict) and "n_total_trials" in value


def _version(version: Any, place: str) -> Finding:
    return Finding(
        rule="archive.version",
        place=f"{place}: schema_version",
        what=f"version {version!r} is not known; this version reads 1",
        remedy="use a newer Assay",
        unread=True,
    )


def _run(value: Mapping[str, Any]) -> ArchiveRun:
    info = mapping(value.get("agent_info"))
    model_info = mapping(info.get("model_info"))
    name, model = text(info.get("name")) or None, text(model_info.get("name")) or None
    if model and model_info.get("provider"):
        model = f"{model_info['provider']}/{model}"
    suite = text(value.get("source")) or "harbor"
    return ArchiveRun(
        key=f"{name} {model or ''} {suite}".strip(),
        suite=suite,
        scaffold=name,
        model=model,
        created=text(value.get("started_at")),
        stated={"agent_version": info.get("version")},
        missing=MISSING,
    )


class _Trial:
    """One trial's folder."""

    def __init__(self, archive: Archive, folder: str, value: Mapping[str, Any]) -> None:
        self.archive, self.folder, self.value = archive, folder, value
        self.findings: list[Finding] = []
        name = text(mapping(value.get("agent_info")).get("name"))
        self.actor = Actor.REFERENCE if name in _REFERENCE_AGENTS else Actor.AGENT

    def episode(self, run: str, member: Member, repeat: int) -> ArchiveEpisode:
        value = self.value
        trajectories = list(self._trajectories())
        outcome, reason, detail, reward, grading = self._graded()
        stop, termination, stop_detail = self._ended()
        execution = mapping(value.get("agent_execution"))
        started, finished = text(execution.get("started_at")), text(execution.get("finished_at"))
        usage, cost = _usage(value)
        for place, trajectory in trajectories:
            self.findings += totals(trajectory, place)
        definition = {"task_checksum": value.get("task_checksum"), "task_id": value.get("task_id")}
        return ArchiveEpisode(
            run=run,
            task=ArchiveTask(
                str(value["task_name"]), next((first_message(item) for _, item in trajectories), ""), definition
            ),
            source=member.source,
            repeat=repeat,
            outcome=outcome,
            reason=reason,
            detail=detail,
            reward=reward,
            criteria=_rewards(value),
            stop=stop,
            stop_detail=stop_detail,
            grading=grading,
            termination=termination,
            attribution=Claim(value="by source", basis=Basis.STATED, evidence="ATIF steps name their source")
            if trajectories
            else Claim(),
            steps=lambda: self._steps(trajectories),
            usage=usage,
            cost_usd=cost,
            seconds=_between(started, finished),
            started=started,
            finished=finished,
            expects_usage=self.actor is Actor.AGENT and bool(trajectories),
            stated={
                "trial_name": value.get("trial_name"),
                "verifier_environment_mode": value.get("verifier_environment_mode"),
                "atif": [envelope(item) for _, item in trajectories],
            },
            findings=tuple(self.findings),
        )

    def _steps(self, trajectories: list[tuple[str, Mapping[str, Any]]]) -> list[Step]:
        return [step for _, trajectory in trajectories for step in atif_steps(trajectory, self.actor)]

    def _trajectories(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        names = [name for name in self.archive.below(self.folder) if name.split("/")[-2:] == _TRAJECTORY]
        for found in documents(self.archive, names, check_version):
            if isinstance(found, Finding):
                self.findings.append(found)
            elif is_trajectory(found.value):
                yield found.name, found.value
            else:
                what = "not a trajectory: it needs schema_version, agent and steps"
                place = self.archive.place(found.name)
                self.findings.append(Finding(rule="archive.foreign", place=place, what=what, unread=True))

    def _graded(self) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
        value = self.value
        rewards = mapping(mapping(value.get("verifier_result")).get("rewards"))
        exception = _exception(value)
        if not rewards:
            reason = _OF_VERIFIER.get(exception or "", Reason.VERDICT_MISSING)
            why = "verifier_result holds no rewards" + (f"; exception {exception}" if exception else "")
            return Outcome.UNGRADED, reason, why, None, Claim(value="no", basis=Basis.STATED, evidence=why)
        name = "reward" if "reward" in rewards else next(iter(rewards)) if len(rewards) == 1 else None
        if name is None:
            why = f"several rewards ({', '.join(rewards)}), none of them called reward"
            claim = Claim(basis=Basis.AMBIGUOUS, evidence=why)
            return Outcome.UNGRADED, Reason.VERDICT_MALFORMED, why, None, claim
        outcome, reason_, detail, reward = verdict(rewards[name], f"rewards.{name}")
        if value.get("reward_valid") is False and exception:
            why = f"{detail}, but Harbor holds it invalid after {exception}"
            claim = Claim(value="no", basis=Basis.STATED, evidence="reward_valid is false")
            return Outcome.INVALID, Reason.VERDICT_CONFLICT, why, reward, claim
        self._compare_with_file(name, rewards[name])
        evidence = f"verifier_result.rewards.{name} is {rewards[name]!r}"
        return outcome, reason_, detail, reward, Claim(value="yes", basis=Basis.STATED, evidence=evidence)

    def _compare_with_file(self, name: str, stored: Any) -> None:
        """The verifier's own file must say what the result says."""
        for ending in ("verifier/reward.json", "verifier/reward.txt"):
            file = f"{self.folder}/{ending}".lstrip("/")
            if file not in self.archive:
                continue
            said = _reward_of(self.archive.read(file), name)
            if said is not None and number(stored) is not None and abs(said - float(stored)) > 1e-9:
                what = f"result.json says reward {stored!r}, the verifier's own file {said:g}"
                self.findings.append(Finding(rule="reward.file", place=self.archive.place(file), what=what))
            return

    def _ended(self) -> tuple[StopReason, Claim, str]:
        exception = mapping(self.value.get("exception_info"))
        kind = _exception(self.value)
        if kind is None:
            if mapping(self.value.get("agent_execution")).get("finished_at"):
                evidence = "agent_execution.finished_at is set, without an exception"
                return StopReason.FINISHED, Claim(value="finished", basis=Basis.INFERRED, evidence=evidence), ""
            return StopReason.UNKNOWN, Claim(), ""
        claim = Claim(value=kind, basis=Basis.STATED, evidence="exception_info.exception_type")
        detail = f"{kind}: {text(exception.get('exception_message'))}"
        if kind in _STOPS:
            return _STOPS[kind], claim, detail
        if kind in _OF_VERIFIER:
            return StopReason.FINISHED, claim, detail
        of_agent = kind.startswith(_OF_AGENT)
        return (StopReason.SOLVER_ERROR if of_agent else StopReason.INFRASTRUCTURE), claim, detail


def _exception(value: Mapping[str, Any]) -> str | None:
    steps = [mapping(step).get("exception_info") for step in listed(value.get("step_results"))]
    for info in (value.get("exception_info"), *steps):
        if mapping(info).get("exception_type"):
            return str(mapping(info)["exception_type"])
    return None


def _rewards(value: Mapping[str, Any]) -> dict[str, float]:
    rewards = mapping(mapping(value.get("verifier_result")).get("rewards"))
    found = {str(name): number(reward) for name, reward in rewards.items()}
    return {name: reward for name, reward in found.items() if reward is not None}


def _reward_of(data: bytes, name: str) -> float | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return number(value.get(name)) if isinstance(value, dict) else number(value)


def _usage(value: Mapping[str, Any]) -> tuple[dict[str, Any] | None, float | None]:
    """Tokens and cost of the agent, of all steps of a trial; None where any of them is not known."""
    contexts = [value["agent_result"]] if value.get("agent_result") else []
    contexts = contexts or [mapping(step).get("agent_result") for step in listed(value.get("step_results"))]
    known = [mapping(context) for context in contexts if context]
    if not known:
        return None, None

    def total(name: str) -> Any:
        counts = [number(context.get(name)) for context in known]
        return None if any(found is None for found in counts) else sum(found for found in counts if found is not None)

    prompt, completion = total("n_input_tokens"), total("n_output_tokens")
    usage = None if prompt is None or completion is None else chat_usage(prompt, total("n_cache_tokens"), completion)
    return usage, total("cost_usd")


def _between(started: str, finished: str) -> float | None:
    first, last = instant(started), instant(finished)
    return None if first is None or last is None else (last - first).total_seconds()
