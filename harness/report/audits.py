"""Audits as plain text: a cycle's outcome, a suite's state, one task explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from harness.records.audit import CAUSE_TEXT, Alert, Availability, Cause, Survivor, Use
from harness.records.audit_views import AuditReport, AuditStatus, Explanation, Side
from harness.report.words import one_line, printable

MOST_TASKS = 40
MEBIBYTE = 1024 * 1024


def report_text(report: AuditReport) -> str:
    """What one audit came to."""
    return "\n".join(f"{name:11} {text}" for name, text in _report_rows(report))


def _report_rows(report: AuditReport) -> Iterator[tuple[str, str]]:
    yield "suite", f"{one_line(report.suite)}, version {report.suite_version[7:19]}"
    if report.cycle is None:
        yield "cycle", "none: nothing changed since the last one, and nothing in it is red or stale"
    else:
        state = "" if report.finished else f"; NOT FINISHED: {one_line(report.problem)}"
        count, of = len(report.audited), report.cycle.tasks
        yield "cycle", f"{report.cycle.cycle}: {report.cycle.scope}, {count} of {of} tasks run{state}"
        for run in report.cycle.runs:
            which = run.sentinel.value if run.mutant is None else f"mutant {run.mutant}"
            yield "run", f"{which}: {run.run} ({run.tasks} tasks)"
        if report.cycle.receipt is not None:
            yield "receipt", report.cycle.receipt
    yield "achievable", f"{report.achievable} of {report.tasks}"
    yield from _why(report)
    yield from _limited("note", (f"{task}: {note}" for task, note in report.notes.items()))
    yield from _limited("raised", (one_line(alert.finding.message) for alert in report.raised))
    yield from _limited("resolved", (one_line(alert.finding.message) for alert in report.resolved))
    old = len(report.standing) - len(report.raised)
    if old > 0:
        yield "standing", f"{old} alert(s) raised before: assay audit status"
    for problem in report.undelivered:
        yield "undelivered", one_line(problem)


def _why(report: AuditReport) -> Iterator[tuple[str, str]]:
    reasons = Counter(reason for reason in report.audited.values() if reason)
    yield from _limited("due", (f"{count} tasks: {reason}" for reason, count in reasons.most_common()))


def _limited(name: str, lines: Iterable[str], most: int = MOST_TASKS) -> Iterator[tuple[str, str]]:
    told = list(lines)
    for line in told[:most]:
        yield name, line
    if len(told) > most:
        yield name, f"and {len(told) - most} more: --json lists all"


def status_text(status: AuditStatus) -> str:
    """A suite's audits as they stand now."""
    return "\n".join(f"{name:11} {text}" for name, text in _status_rows(status))


def _status_rows(status: AuditStatus) -> Iterator[tuple[str, str]]:
    version = f", version {status.suite_version[7:19]}" if status.suite_version else ""
    yield "suite", one_line(status.suite) + version
    if status.cycle is None:
        yield "achievable", f"not measured: assay audit all --suite {one_line(status.suite)}"
        yield from _told(status)
        return
    out = len(status.unavailable)
    rate = f" ({100 * out / status.tasks:.1f} %)" if status.tasks else ""
    yield "achievable", f"{status.achievable} of {status.tasks}, {out} unavailable{rate}"
    yield "audited", f"by {status.cycle.cycle}, gold of {(status.oldest_gold or 'never')[:16]} or later"
    if status.written_since:
        yield "note", f"files were written since: assay audit all --suite {one_line(status.suite)} --changed"
    elif status.written_since is None:
        yield "note", "files were seconds old: whether they were written since, `assay audit gold --changed` finds out"
    by_cause: dict[Cause, list[Availability]] = {}
    for found in status.unavailable:
        if found.cause is not None:
            by_cause.setdefault(found.cause, []).append(found)
    for cause, tasks in sorted(by_cause.items(), key=lambda item: -len(item[1])):
        yield "unavailable", f"{len(tasks)} {CAUSE_TEXT[cause]}"
        most = 5 if cause in (Cause.NEVER, Cause.STALE) else MOST_TASKS
        yield from _limited("", (_task(found) for found in tasks), most)
    yield from _limited("at risk", (f"{found.task}: {_uses(found.at_risk)}" for found in status.at_risk))
    for task, survivors in status.survivors.items():
        for left in survivors:
            yield "survived", f"{task}: mutant {left.number}, {one_line(left.name)} ({left.trial})"
    if status.retired:
        yield "retired", ", ".join(status.retired)
    yield from _told(status)
    for one in status.breaks:
        yield "break", f"{one.at[:10]} {one_line(one.why)}"


def _told(status: AuditStatus) -> Iterator[tuple[str, str]]:
    """Alerts that stand, and what the next audit will raise."""
    now = {found.key: found.message for found in status.findings}  # numbers move on while an alert stands
    yield from _limited("alert", (_alert(alert, now) for alert in status.standing))
    raised = {alert.finding.key for alert in status.standing}
    new = (found for found in status.findings if found.key not in raised)
    yield from _limited("to alert", (f"{found.kind.value}: {one_line(found.message)}" for found in new))


def _task(found: Availability) -> str:
    since = f" since {found.since[:10]}" if found.since else ""
    said = f": {one_line(found.detail)}" if found.detail else ""
    return f"  {found.task}{since}{said}"


def _alert(alert: Alert, now: Mapping[str, str]) -> str:
    said = now.get(alert.finding.key, alert.finding.message)
    return f"{alert.raised[:16]} {alert.finding.kind.value}: {one_line(said)}"


def _uses(uses: Iterable[Use]) -> str:
    return ", ".join(f"{use.name} {_amount(use.used, use.unit)} of {_amount(use.limit, use.unit)}" for use in uses)


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / MEBIBYTE:.1f} MiB"
    return f"{value:.1f} s" if unit == "s" else f"{value:g}"


def explanation_text(found: Explanation) -> str:
    """One task: what it is now, its last green and first red, what changed between, and the surviving mutants."""
    lines = list(_explained(found))
    text = "\n".join(f"{name:11} {said}" for name, said in lines)
    if found.output_diff:
        text += f"\n\nthe grader's output, {found.sentinel.value} then and now:\n{printable(found.output_diff)}"
    for one in found.survivors:
        text += "\n\n" + survivor_text(one, found.outputs.get(one.trial, ""))
    return text


def _explained(found: Explanation) -> Iterator[tuple[str, str]]:
    now = found.now
    yield "task", f"{found.task}, version {now.task_version[7:19]}"
    state = "available" if now.cause is None else CAUSE_TEXT[now.cause]
    since = f" since {now.since[:16]}" if now.since else ""
    yield "now", f"{state}{since}{f': {one_line(now.detail)}' if now.detail else ''}"
    if found.green is not None:
        yield "last green", _side(found.green)
    elif found.red is not None:
        yield "last green", "none on record"
    if found.red is not None:
        yield "first red", _side(found.red)
    if found.red is not None and found.green is not None:
        parts = ", ".join(_part(found.green, found.red, part) for part in found.changed)
        yield (
            "changed",
            parts or "nothing in the task: its surroundings did (an image, a mirror, a service, the machine)",
        )
    uses = found.red.evidence.uses if found.red else now.uses
    before = {use.name: use for use in found.green.evidence.uses} if found.green else {}
    for use in uses:
        then = before.get(use.name)
        was = f", {_amount(then.used, then.unit)} then" if then is not None and found.red is not None else ""
        yield "used", f"{use.name}: {_amount(use.used, use.unit)} of {_amount(use.limit, use.unit)}{was}"
    for name, said in (("drift", found.drift), ("note", found.note)):
        if said:
            yield name, one_line(said)
    for one in found.decisions:
        yield one.kind.value, f"{one.at[:10]}: {one_line(one.reason)}"


def _side(side: Side) -> str:
    evidence = side.evidence
    trials = f"; assay trial {side.trial}" if side.trial is not None else ""
    return f"{side.at[:16]}, {evidence.passed} of {evidence.attempts} passed ({side.cycle}){trials}"


def _part(green: Side, red: Side, name: str) -> str:
    then, now = getattr(green.fingerprint, name), getattr(red.fingerprint, name)
    return f"{name} ({then[-12:]} → {now[-12:]})" if name in ("image", "grader", "platform") else name


def survivor_text(survivor: Survivor, output: str) -> str:
    """A surviving mutant: what is wrong with it, and what the grader said."""
    said = printable(output).rstrip() or "(nothing)"
    return (
        f"mutant {survivor.number} passed: {one_line(survivor.name)}  (assay trial {survivor.trial})\n"
        f"{printable(survivor.diff)}\nthe grader printed:\n{said}"
    )
