"""SWE-bench: predictions (JSON or JSON lines), run reports (schema 2), and reports of single instances.

Only what means one thing becomes a verdict. A run report's `resolved_ids` and `unresolved_ids` are; errors and empty
patches were graded by nobody, and what is incomplete is not there. Where an instance has a report of its own, that one
counts: it says more. In an instance's report, `patch_successfully_applied: false` is also
written for time-outs and unreadable logs: without tests_status it is ungraded, unless the test log says that the patch
did not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Member
from harness.importers.reports import documents, listed, mapping, unread
from harness.importers.shape import named, only_file, shape
from harness.importers.steps import said, text
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
    SourceRef,
)
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason

MISSING = ("what was done and said", "why a solver stopped", "token usage and cost", "dates")
_LISTS = ("submitted_ids", "resolved_ids", "unresolved_ids", "error_ids", "empty_patch_ids")
_PREDICTION = ("instance_id", "model_patch")
_FLAGS = ("patch_exists", "patch_successfully_applied", "resolved")
_NOT_APPLIED = b">>>>> Patch Apply Failed"
_TIMED_OUT = "tests_timed_out"
_KNOWN_SCHEMAS = (None, 1, 2)


@dataclass(frozen=True)
class SweBenchImporter:
    """An :class:`harness.protocols.Importer` for SWE-bench."""

    name: str = "swe-bench"

    def recognises(self, archive: Archive) -> Recognition | None:
        kinds = {kind for name in _candidates(archive)[:200] if (kind := _kind(archive, name))}
        if not kinds:
            return None
        lacking = () if kinds & {"report", "instance"} else ("verdicts: these are predictions alone",)
        return Recognition(self.name, f"SWE-bench {' and '.join(sorted(kinds))} files", 2, (*lacking, *MISSING))

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        kinds = {name: kind for name in _candidates(archive) if (kind := _kind(archive, name))}
        patches = _Predictions()
        for name, kind in kinds.items():
            if kind == "prediction":
                yield from patches.read(archive, name)
        own = _Instances()
        yield from own.read(archive, [name for name, kind in kinds.items() if kind == "instance"])
        reports = [name for name, kind in kinds.items() if kind == "report"]
        if reports:
            yield from _reports(archive, reports, patches, own)
        elif own.found:
            yield from own.alone(patches)
        else:
            yield from patches.alone()


def _candidates(archive: Archive) -> list[str]:
    one = only_file(archive)
    if one:
        return [one]
    reports = named(archive.names, "report.json")
    loose = [n for n in archive.names if n.endswith((".json", ".jsonl")) and n.count("/") <= 1 and n not in reports]
    return [*loose, *reports]


def _kind(archive: Archive, name: str) -> str:
    """`report`, `instance` or `prediction`, or "" for something else."""
    found = shape(archive, name)
    if found.has(*_LISTS):
        return "report"
    if found.has(*_PREDICTION) or found.first_has(*_PREDICTION):
        return "prediction"
    values = list(found.fields.values())
    first = values[0] if values else None
    if isinstance(first, dict) and found.kind == "object":
        if all(flag in first for flag in _FLAGS):
            return "instance"
        if all(field in first for field in _PREDICTION):
            return "prediction"
    return ""


class _Predictions:
    """Patches by instance, with where they stand."""

    def __init__(self) -> None:
        self.model: str | None = None
        self._known: dict[str, tuple[str | None, SourceRef]] = {}

    def read(self, archive: Archive, name: str) -> Iterator[ArchiveItem]:
        found = shape(archive, name)
        lines = found.kind == "lines" or (found.kind == "object" and found.has(*_PREDICTION))
        for member in archive.lines(name) if lines else archive.members(name):
            value = member.value
            if member.problem or not (isinstance(value, dict) and "instance_id" in value):
                yield unread(member, "a prediction needs instance_id and model_patch")
                continue
            patch = value.get("model_patch")
            self.model = self.model or (str(value["model_name_or_path"]) if value.get("model_name_or_path") else None)
            self._known[str(value["instance_id"])] = (patch if isinstance(patch, str) else None, member.source)

    def patch(self, instance: str) -> str | None:
        return self._known[instance][0] if instance in self._known else None

    def alone(self) -> Iterator[ArchiveItem]:
        """Predictions without reports: nothing was graded."""
        run = _run(self.model, ())
        yield run
        for instance, (patch, source) in self._known.items():
            why = "a prediction without a report: nothing graded it"
            claim = Claim(value="no", basis=Basis.INFERRED, evidence="the archive holds no report")
            yield _episode(run.key, instance, source, (Outcome.UNGRADED, Reason.VERDICT_MISSING, why, claim), patch)


_Verdict = tuple[Outcome, Reason | None, str, Claim]


def _reports(archive: Archive, names: list[str], patches: _Predictions, own: _Instances) -> Iterator[ArchiveItem]:
    for found in documents(archive, names, _check_version):
        if isinstance(found, Finding):
            yield found
            continue
        name, source, value = found.name, found.source, found.value
        lists = {key: [str(id_) for id_ in listed(value.get(key))] for key in (*_LISTS, "incomplete_ids")}
        model = patches.model or name.rpartition("/")[2].partition(".")[0]
        planned = sorted({id_ for ids in lists.values() for id_ in ids})
        totals = {"n_passed": value.get("resolved_instances"), "planned": value.get("total_instances")}
        run = _run(model, tuple(planned), totals)
        yield run
        for instance in planned:
            if instance in own.found:
                yield own.episode(run.key, instance, patches)
            elif instance not in lists["incomplete_ids"]:
                verdict = own.not_applied(archive, instance) or _listed(
                    instance, lists, mapping(value.get("failure_reasons"))
                )
                yield _episode(run.key, instance, source, verdict, patches.patch(instance))


def _check_version(value: Any, place: str) -> None:
    version = mapping(value).get("schema_version")
    if version not in _KNOWN_SCHEMAS:
        raise ArchiveError(
            f"schema_version {version!r} is not known; this version reads 2",
            place=f"{place}: schema_version",
            remedy="use a newer Assay",
        )


def _listed(instance: str, lists: Mapping[str, list[str]], reasons: Mapping[str, Any]) -> _Verdict:
    where = [key for key in _LISTS[1:] if instance in lists[key]]
    evidence = f"listed in {', '.join(where) or 'submitted_ids only'}"
    graded = [key for key in where if key in ("resolved_ids", "unresolved_ids")]
    if len(graded) == 2 or (graded and len(where) > 1):
        claim = Claim(basis=Basis.AMBIGUOUS, evidence=evidence)
        return Outcome.INVALID, Reason.VERDICT_CONFLICT, f"{evidence}: they exclude each other", claim
    if graded:
        outcome = Outcome.PASSED if graded == ["resolved_ids"] else Outcome.FAILED
        return outcome, None, evidence, Claim(value="yes", basis=Basis.STATED, evidence=evidence)
    claim = Claim(value="no", basis=Basis.STATED, evidence=evidence)
    said = text(reasons.get(instance))
    reason = Reason.GRADER_CRASHED if "error_ids" in where else Reason.VERDICT_MISSING
    reason = Reason.GRADER_TIMEOUT if said == _TIMED_OUT else reason
    return Outcome.UNGRADED, reason, evidence + (f"; failure_reasons says {said}" if said else ""), claim


class _Instances:
    """Reports of single instances, with the test log beside each."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[_Verdict, SourceRef, Mapping[str, Any]]] = {}
        self._model: str | None = None
        self._logs: dict[str, str] | None = None

    def read(self, archive: Archive, names: list[str]) -> Iterator[ArchiveItem]:
        for found in documents(archive, names):
            if isinstance(found, Finding):
                yield found
                continue
            parts, source = found.name.split("/"), found.source
            self._model = self._model or (parts[-3] if len(parts) > 2 else None)
            log = "/".join([*parts[:-1], "test_output.txt"])
            said_not_applied = log in archive and _NOT_APPLIED in archive.read(log)
            for instance, report in mapping(found.value).items():
                if isinstance(report, dict) and "resolved" in report:
                    self.found[instance] = (_reported(report, said_not_applied), source, report)
                else:
                    yield unread(Member((instance,), None, source), "a report needs resolved")

    def not_applied(self, archive: Archive, instance: str) -> _Verdict | None:
        """The verdict on a patch that did not apply: since version 5 there is no report of it, only the run's log."""
        if self._logs is None:
            logs = [name for name in archive.names if name.endswith("/run_instance.log")]
            self._logs = {name.split("/")[-2]: name for name in logs}
        log = self._logs.get(instance)
        if log is None or _NOT_APPLIED not in archive.read(log):
            return None
        claim = Claim(value="yes", basis=Basis.INFERRED, evidence="run_instance.log says that the patch did not apply")
        return Outcome.FAILED, None, "the patch did not apply", claim

    def episode(self, run: str, instance: str, patches: _Predictions) -> ArchiveEpisode:
        verdict, source, report = self.found[instance]
        return _episode(run, instance, source, verdict, patches.patch(instance), report)

    def alone(self, patches: _Predictions) -> Iterator[ArchiveItem]:
        run = _run(patches.model or self._model, ())
        yield run
        for instance in self.found:
            yield self.episode(run.key, instance, patches)


def _reported(report: Mapping[str, Any], said_not_applied: bool) -> _Verdict:
    flags = ", ".join(f"{flag} {report.get(flag)}" for flag in _FLAGS)
    if report.get("resolved") is True:
        return Outcome.PASSED, None, flags, Claim(value="yes", basis=Basis.STATED, evidence=flags)
    if report.get("patch_successfully_applied") is True and report.get("tests_status"):
        return Outcome.FAILED, None, flags, Claim(value="yes", basis=Basis.STATED, evidence="tests_status")
    if said_not_applied:
        claim = Claim(value="yes", basis=Basis.INFERRED, evidence="the test log says that the patch did not apply")
        return Outcome.FAILED, None, f"{flags}; the patch did not apply", claim
    if report.get("patch_exists") is False or report.get("patch_is_None") is True:
        claim = Claim(value="no", basis=Basis.STATED, evidence=flags)
        return Outcome.UNGRADED, Reason.VERDICT_MISSING, f"no patch: {flags}", claim
    why = f"{flags} without tests_status: written for time-outs and unreadable logs too"
    return Outcome.UNGRADED, Reason.VERDICT_MISSING, why, Claim(basis=Basis.AMBIGUOUS, evidence=flags)


def _run(model: str | None, tasks: tuple[str, ...], stated: dict[str, Any] | None = None) -> ArchiveRun:
    return ArchiveRun(
        key=model or "run", suite="swe-bench", model=model, tasks=tasks, stated=stated or {}, missing=MISSING
    )


def _episode(
    run: str,
    instance: str,
    source: SourceRef,
    found: _Verdict,
    patch: str | None,
    report: Mapping[str, Any] | None = None,
) -> ArchiveEpisode:
    outcome, reason, detail, grading = found
    return ArchiveEpisode(
        run=run,
        task=ArchiveTask(instance),
        source=source,
        outcome=outcome,
        reason=reason,
        detail=detail,
        reward=float(outcome is Outcome.PASSED) if outcome.graded else None,
        criteria=_criteria(report or {}),
        stop=StopReason.UNKNOWN,
        grading=grading,
        steps=lambda: [said(Actor.AGENT, patch)] if patch is not None else [],
        stated={"patch_bytes": len(patch.encode("utf-8", "surrogatepass"))} if patch is not None else {},
    )


def _criteria(report: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for group, tests in mapping(report.get("tests_status")).items():
        for word, value in (("success", 1.0), ("failure", 0.0)):
            found |= {f"{group}: {test}": value for test in listed(mapping(tests).get(word))}
    return found
