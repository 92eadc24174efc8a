"""A replay as text: what was compared, what is invalid and why, shares with both denominators, one episode's steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.records.archive import Fault
from harness.records.migration import MigrationReport
from harness.records.replay import Match, Replayed, ReplayedStep
from harness.records.replays import EpisodeReplay, ReplayReport, Restored
from harness.report.words import counted, one_line

MOST_SHOWN = 10
FAULTS = {
    Fault.DROPPED: "a call left out with its answer",
    Fault.SWAPPED: "neighbouring calls swapped",
    Fault.ARGUMENT: "an argument that no answer depends on",
    Fault.OBSERVATION: "an answer that was edited",
    Fault.ROW: "a changed row that no answer shows",
    Fault.END: "last steps cut off",
}
_MARKS = {Match.SAME: "=", Match.COSMETIC: "~", Match.KEY: "≠", Match.UNCHECKED: "?"}


def replay_text(report: ReplayReport, *, every: bool = False) -> str:
    """The report; with `every`, all that is wrong and not only the first of it."""
    header, counts = report.header, report.counts
    data = f", data {header.data}" if header.data else ""
    lines = [
        f"{header.path}: {report.read} of {_planned(report)} planned episodes read ({header.format})",
        *(f"taken: {one_line(note)}" for note in report.taken),
        *_missing(report),
        f"replayed in {header.environment}{data}, mode {header.mode}: {report.replayed} valid",
        *_compared(counts, report.rules),
    ]
    most = None if every else MOST_SHOWN
    if report.invalid:
        reasons = ", ".join(f"{count} {reason.value}" for reason, count in report.invalid.items())
        lines.append(f"invalid, and in no mean: {sum(report.invalid.values())} ({reasons})")
        refused = [one_line(report.refused)] if report.refused else []
        lines += refused or _some([row for row in report.episodes if not row.valid], most)
    lines += _unshown(report)
    flagged = [row for row in report.episodes if row.flags]
    if flagged:
        first = flagged[0]
        some = counted(len(flagged), "episode")
        lines.append(f"not deterministic: {some}, the first {one_line(first.episode)}: {first.flags[0]}")
    lines += _graded(report, most)
    if report.restored is not None:
        lines += _restored(report.restored)
    lines += [f"not read: {one_line(found.place)}: {one_line(found.what)}" for found in report.unread[:most]]
    lines += [f"note: {one_line(note)}" for note in report.notes]
    if report.kept_in:
        lines.append(f"kept in {', '.join(report.kept_in)}; the old scores stay")
    return "\n".join(lines)


def _planned(report: ReplayReport) -> str:
    return f"{'at least ' * report.at_least}{report.planned}"


def _missing(report: ReplayReport) -> Iterator[str]:
    """What should be there and is not."""
    count = report.planned - report.read
    if count or report.at_least:
        shown = ", ".join(one_line(name) for name in report.missing[:MOST_SHOWN])
        more = count - min(len(report.missing), MOST_SHOWN)
        told = f": {shown}" + (f" and {more} more" if more else "") if shown else ""
        yield f"missing: {'at least ' * report.at_least}{count}{told}"


def _compared(counts: dict[str, int], rules: dict[str, int]) -> Iterator[str]:
    if not counts:
        return
    parts = [f"{counts[name]} {name}" for name in ("same", "cosmetic", "key", "unchecked") if counts[name]]
    missing = f", {counts['missing']} without their tool" if counts["missing"] else ""
    yield f"calls: {counts['steps']}: {', '.join(parts) or 'none'}{missing}"
    if rules:
        yield f"  cosmetic under {', '.join(f'{rule} ({count})' for rule, count in rules.items())}"
    yield (
        f"required calls done: {counts['required_done']} of {counts['required']}; "
        f"recorded states that are the same: {counts['checkpoints_same']} of {counts['checkpoints']}"
    )


def _unshown(report: ReplayReport) -> Iterator[str]:
    """What an edited record could hide: a limit of its evidence, not of the replay."""
    counts = Counter(fault for row in report.episodes for fault in row.fidelity.unshown)
    if counts:
        told = (f"{FAULTS[fault]} ({counts[fault]})" for fault in Fault if counts[fault])
        yield f"not shown by the record, of episodes: {', '.join(told)}"


def _some(rows: list[EpisodeReplay], most: int | None) -> Iterator[str]:
    for row in rows[:most]:
        fidelity = row.fidelity
        share = (
            f", {100 * fidelity.d_share:.0f} % of {counted(fidelity.steps, 'call')}"
            if fidelity.d_first is not None
            else ""
        )
        yield f"  {one_line(row.episode)} from step {fidelity.invalid_at}{share}: {one_line(fidelity.detail)}"
    if most is not None and len(rows) > most:
        yield f"  … and {len(rows) - most} more: --all shows them"


def _graded(report: ReplayReport, most: int | None) -> Iterator[str]:
    if report.bounds is None:
        return
    low, high = report.bounds
    rate = "none" if report.rate is None else f"{100 * report.rate:.1f} %"
    yield f"{report.header.grader}: {report.passed} of {report.valid} valid passed, {rate}"
    every, wider = ("", ", and wider with what else is missing") if report.at_least else ("all ", "")
    yield f"of {every}{_planned(report)} planned: {100 * low:.1f} to {100 * high:.1f} %{wider}"
    without = [row for row in report.episodes if row.valid and row.verdict is None]
    if without:
        yield f"no verdict on {counted(len(without), 'valid replay')}"
        for row in without[:most]:
            assert row.grade is not None  # a grader was named
            yield f"  {one_line(row.episode)}: {row.grade.outcome.value}: {one_line(row.grade.detail)}"
    found = report.reproduced
    if found is not None:
        yield f"recorded verdicts given again: {found.same} of {found.compared} (of {found.recorded} recorded)"
        moved = list(found.moved.items())
        for episode, how in moved[:most]:
            yield f"  {one_line(episode)}: {how}"
        if most is not None and len(moved) > most:
            yield f"  … and {len(moved) - most} more: --all shows them"


def _restored(found: Restored) -> Iterator[str]:
    before, after = (f"{100 * low:.1f} to {100 * high:.1f} %" for low, high in (found.before, found.after))
    yield f"restored: {found.restored}, of these {found.restored_passed} passed; of all planned {before}, now {after}"
    yield f"  {'ended by':20} {'write':5} {'recorded':13} {'agree':>9} {'bound':>6}  ungraded  restored"
    for line in found.strata:
        write, share = ("yes" if line.write_required else "no"), f"{line.agree}/{line.graded}"
        row = f"  {one_line(line.termination):20} {write:5} {line.checkpoint:13} {share:>9} {line.lower:6.3f}"
        yield f"{row}  {line.ungraded:8}  {line.restored:8}  {line.why}".rstrip()


def steps_text(replayed: Replayed, *, width: int = 100) -> str:
    """An episode step by step: what was recorded, what is answered now, the state's digest, the first divergence."""
    fidelity, episode = replayed.fidelity, replayed.episode
    calls = counted(fidelity.steps, "call")
    lines = [f"{episode.id} in {replayed.environment}, mode {replayed.mode}: {calls}"]
    for step in replayed.steps:
        lines += _step(step, replayed, width)
    if fidelity.invalid is None:
        state = f", end state {replayed.end_state[:16]}" if replayed.end_state else ""
        lines.append(f"valid: {fidelity.same} same, {fidelity.cosmetic} cosmetic{state}")
    else:
        lines.append(f"invalid ({fidelity.invalid.value}) from step {fidelity.invalid_at}: {one_line(fidelity.detail)}")
    if fidelity.d_first is not None:
        lines.append(
            f"first divergence at step {fidelity.d_first}; {100 * fidelity.d_share:.1f} % of the calls diverge"
        )
    lines.append(f"required calls done: {fidelity.required_done} of {fidelity.required}")
    if fidelity.witnesses:
        lines.append(f"compared beside the steps: {', '.join(fidelity.witnesses)}")
    if fidelity.unshown:
        lines.append(f"not shown by the record: {', '.join(FAULTS[fault] for fault in fidelity.unshown)}")
    return "\n".join(lines)


def _step(step: ReplayedStep, replayed: Replayed, width: int) -> Iterator[str]:
    recorded = replayed.episode.steps[step.index]
    marks = [step.match.value if not step.rule else f"{step.match.value}: {one_line(step.rule)}"]
    marks += ["no such tool here"] if step.missing else []
    marks += ["required"] if step.required else []
    marks += [f"state {step.state[:16]}"] if step.state else []
    arguments = one_line(str(recorded.payload.get("arguments")))
    yield f"{step.index:>4} {_MARKS[step.match]} {recorded.actor.value} {_cut(f'{step.name} {arguments}', width)}"
    yield f"       {'; '.join(marks)}"
    if step.match is Match.SAME:
        yield f"       both      {_cut(one_line(step.replayed), width)}"
        return
    shown = "nothing" if step.recorded is None else one_line(step.recorded)
    yield f"       recorded  {_cut(shown, width)}"
    yield f"       replayed  {_cut(one_line(step.replayed), width)}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def migration_text(report: MigrationReport, *, every: bool = False) -> str:
    """What was written, and what the conversion changed."""
    lines = [f"{report.path}: {report.format} to {report.to}"]
    lines += [f"taken: {one_line(note)}" for note in report.taken]
    lines += [f"written: {path}" for path in report.written]
    lines += [f"note: {one_line(note)}" for note in report.notes]
    if not report.checked:
        return "\n".join([*lines, "not checked: --check replays and grades both sides"])
    where = f"{report.environment}, mode {report.mode}, {report.grader}"
    lines.append(f"checked: {counted(report.episodes, 'episode')} before and after, in {where}")
    if report.clean:
        return "\n".join([*lines, "nothing moved: the format keeps what the old rule looks at"])
    counts = Counter(one.what for one in report.differences)
    lines.append(
        f"{counted(report.moved, 'episode')} moved: {', '.join(f'{count} {what}' for what, count in counts.items())}"
    )
    shown = report.differences if every else report.differences[:MOST_SHOWN]
    for one in shown:
        before, after = (_cut(one_line(value or "nothing"), 60) for value in (one.before, one.after))
        lines.append(f"  {one_line(one.episode)}: {one.what}: {before} became {after}")
    if len(shown) < len(report.differences):
        lines.append(f"  … and {len(report.differences) - len(shown)} more: --all shows them")
    if report.unread_after != report.unread_before:
        lines.append(f"{counted(report.unread_after - report.unread_before, 'part')} could not be read any more")
    return "\n".join(lines)
