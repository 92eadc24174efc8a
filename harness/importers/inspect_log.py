"""Inspect logs: `.eval` (a ZIP of JSON, mostly Zstandard) and `.json`, schema versions 1 and 2.

A log that was cut off has its samples but no header: what its journal says of the start is used. Tokens of graders run
in the same process are in a sample's totals; the spans of its events tell them apart. A sample that ended in an error
has no score, and is ungraded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.inspect_sample import sample_steps, sample_usage
from harness.importers.json_stream import Member
from harness.importers.reports import document, documents, listed, mapping, unread
from harness.importers.shape import only_file, shape
from harness.importers.steps import number, text, verdict
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
)
from harness.records.vocabulary import Outcome, Reason, StopReason

MISSING = ("image digests", "command exit codes and durations")
_STREAMED = frozenset({"samples"})
_VERSIONS = (1, 2)
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_STOPS = {
    "token": StopReason.TOKENS,
    "time": StopReason.TIME,
    "working": StopReason.TIME,
    "message": StopReason.STEPS,
    "turn": StopReason.STEPS,
    "cost": StopReason.COST,
    "operator": StopReason.CANCELLED,
}
_MOST_SAMPLE = 1 << 30


@dataclass(frozen=True)
class InspectImporter:
    """An :class:`harness.protocols.Importer` for Inspect."""

    name: str = "inspect"

    def recognises(self, archive: Archive) -> Recognition | None:
        if archive.is_zip:
            journal = "_journal/start.json" in archive
            if not journal and not ("header.json" in archive and any(archive.below("samples"))):
                return None
            whole = "header.json" in archive
            lacking = () if whole else ("its header: the log was cut off before its end",)
            return Recognition(self.name, "an Inspect log (.eval)", 2, (*lacking, *MISSING))
        name = only_file(archive)
        found = shape(archive, name) if name else None
        if found is None or not found.has("version", "eval") or not isinstance(found.fields.get("eval"), dict):
            return None
        return Recognition(self.name, "an Inspect log (JSON)", 2, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        if archive.is_zip:
            yield from _read_zip(archive, options)
        else:
            yield from _read_json(archive, archive.names[0], options)


def _read_zip(archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
    name = "header.json" if "header.json" in archive else "_journal/start.json"
    header = mapping(document(archive, name)[1])
    log = _Log(header, archive.place(name), options)
    yield log.run()
    for found in documents(archive, archive.below("samples"), most=_MOST_SAMPLE):
        yield found if isinstance(found, Finding) else log.episode(Member((), found.value, found.source))


def _read_json(archive: Archive, name: str, options: ImportOptions) -> Iterator[ArchiveItem]:
    header: dict[str, Any] = {}
    log: _Log | None = None
    for member in archive.members(name, _STREAMED):
        if len(member.path) == 2:
            if log is None:
                log = _Log(header, archive.place(name), options)
                yield log.run()
            yield log.episode(member)
        elif member.problem:
            yield unread(member, "")
        else:
            header[str(member.path[0])] = member.value
    if log is None:
        yield _Log(header, archive.place(name), options).run()


class _Log:
    """What the header says, and samples as episodes with it."""

    def __init__(self, header: Mapping[str, Any], place: str, options: ImportOptions) -> None:
        self.header, self.spec = header, mapping(header.get("eval"))
        if header.get("version") not in _VERSIONS:
            raise ArchiveError(
                f"log version {header.get('version')!r} is not known; this version reads 1 and 2",
                place=f"{place}: version",
                remedy="use a newer Assay, or convert it with `inspect log convert`",
            )
        results = mapping(header.get("results"))
        scored = [
            str(mapping(score).get("scorer") or mapping(score).get("name")) for score in listed(results.get("scores"))
        ]
        declared = [str(mapping(scorer).get("name")) for scorer in listed(self.spec.get("scorers"))]
        self.scorers = list(dict.fromkeys(scored or declared))
        self.asked = options.scorer

    def run(self) -> ArchiveRun:
        spec, config = self.spec, mapping(self.spec.get("config"))
        epochs = config.get("epochs")
        repeats = epochs if isinstance(epochs, int) and epochs > 0 else None
        stated: dict[str, Any] = {key: spec[key] for key in ("task_version", "run_id", "eval_id") if key in spec}
        stated["status"] = self.header.get("status")
        accuracy = self._accuracy()
        if accuracy is not None and repeats in (None, 1):
            stated["accuracy"] = accuracy
        return ArchiveRun(
            key="run",
            suite=text(spec.get("task")) or "inspect",
            scaffold=text(spec.get("solver")) or None,
            model=text(spec.get("model")) or None,
            created=text(spec.get("created")),
            tasks=tuple(str(id_) for id_ in listed(mapping(spec.get("dataset")).get("sample_ids"))),
            repeats=repeats,
            stated=stated,
            missing=MISSING,
        )

    def _accuracy(self) -> float | None:
        scores = listed(mapping(self.header.get("results")).get("scores"))
        if len(scores) != 1:
            return None
        return number(mapping(mapping(mapping(scores[0]).get("metrics")).get("accuracy")).get("value"))

    def episode(self, member: Member) -> ArchiveEpisode | Finding:
        value = member.value
        if member.problem or not (isinstance(value, dict) and "id" in value and "epoch" in value):
            return unread(member, "a sample needs id and epoch")
        outcome, reason, detail, reward, grading = self._graded(value)
        stop, termination, stop_detail = _ended(value)
        error = mapping(value.get("error"))
        if error and reason is Reason.VERDICT_MISSING:
            reason, detail = Reason.SOLVER_ERROR, f"error: {text(error.get('message'))}"
        return ArchiveEpisode(
            run="run",
            task=ArchiveTask(str(value["id"]), _prompt(value.get("input")), _definition(value)),
            source=member.source,
            repeat=value["epoch"] - 1 if isinstance(value["epoch"], int) and value["epoch"] > 0 else 0,
            outcome=outcome,
            reason=reason,
            detail=detail,
            reward=reward,
            criteria=_criteria(value),
            stop=stop,
            stop_detail=stop_detail,
            grading=grading,
            termination=termination,
            attribution=Claim(value="by role and span", basis=Basis.STATED, evidence="message roles; spans of events"),
            steps=lambda: sample_steps(value),
            usage=sample_usage(value),
            step_count=sum(mapping(m).get("role") == "assistant" for m in listed(value.get("messages"))),
            seconds=number(value.get("total_time")),
            started=text(value.get("started_at")),
            finished=text(value.get("completed_at")),
            expects_usage=not error,
            stated={key: value.get(key) for key in ("uuid", "limit", "working_time") if value.get(key) is not None},
        )

    def _graded(self, value: Mapping[str, Any]) -> tuple[Outcome, Reason | None, str, float | None, Claim]:
        scores = mapping(value.get("scores"))
        if not scores:
            claim = Claim(value="no", basis=Basis.STATED, evidence="scores is empty")
            return Outcome.UNGRADED, Reason.VERDICT_MISSING, "no score", None, claim
        name = self.asked or (next(iter(scores)) if len(scores) == 1 else None)
        if name is None:
            readings = {_read(mapping(score).get("value"))[0] for score in scores.values()}
            if len(readings) != 1:
                why = f"several scorers disagree ({', '.join(scores)}): say whose score counts with --scorer"
                return Outcome.UNGRADED, Reason.VERDICT_CONFLICT, why, None, Claim(basis=Basis.AMBIGUOUS, evidence=why)
            name = next(iter(scores))
        if name not in scores:
            why = f"scorer {name!r} gave no score"
            return (
                Outcome.UNGRADED,
                Reason.VERDICT_MISSING,
                why,
                None,
                Claim(value="no", basis=Basis.STATED, evidence=why),
            )
        stored = mapping(scores[name]).get("value")
        outcome, reason, detail, reward = _read(stored, f"scores.{name}.value")
        yes = Claim(
            value="yes" if reason is None else "no",
            basis=Basis.STATED,
            evidence=f"scores.{name}.value is {stored!r}"[:200],
        )
        return outcome, reason, detail, reward, yes


def _read(stored: Any, field: str = "value") -> tuple[Outcome, Reason | None, str, float | None]:
    """A score of Inspect's: a letter, a number, or true and false."""
    if isinstance(stored, str) and stored in _LETTERS:
        outcome, reason, _, reward = verdict(_LETTERS[stored], field)
        return outcome, reason, f"{field} is {stored!r}", reward
    return verdict(stored, field)


def _criteria(value: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, score in mapping(value.get("scores")).items():
        stored = mapping(score).get("value")
        parts = (
            {name: stored} if not isinstance(stored, dict) else {f"{name}.{key}": part for key, part in stored.items()}
        )
        for key, part in parts.items():
            reward = _read(part)[3]
            if reward is not None:
                found[str(key)] = reward
    return found


def _ended(value: Mapping[str, Any]) -> tuple[StopReason, Claim, str]:
    limit, error = mapping(value.get("limit")), mapping(value.get("error"))
    if limit:
        word = str(limit.get("type"))
        detail = f"{word} limit {limit.get('limit')}"
        return (
            _STOPS.get(word, StopReason.UNKNOWN),
            Claim(value=word, basis=Basis.STATED, evidence="limit.type"),
            detail,
        )
    if error:
        # The error may be the solver's, the model service's or the sandbox's: Inspect does not say.
        message = text(error.get("message"))
        return StopReason.UNKNOWN, Claim(value="error", basis=Basis.STATED, evidence="error"), message
    if value.get("completed_at"):
        evidence = "completed_at is set, without limit or error"
        return StopReason.FINISHED, Claim(value="finished", basis=Basis.INFERRED, evidence=evidence), ""
    return StopReason.UNKNOWN, Claim(), ""


def _prompt(given: Any) -> str:
    if isinstance(given, str):
        return given
    return "\n".join(str(mapping(message).get("content")) for message in listed(given))


def _definition(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("input", "target", "choices", "files", "setup") if value.get(key) is not None}
