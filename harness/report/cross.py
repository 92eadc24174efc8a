"""The cross table as text, and a run that was graded again."""

from __future__ import annotations

from collections import Counter

from harness.records.cross import Attribution, CrossTable, EffectLine, ReversalLine, TransitionLine
from harness.records.regrade import Regraded, RegradeHeader
from harness.records.vocabulary import Outcome
from harness.report.words import counted, one_line

MOST_TASKS = 8
MOST_TRIALS = 20


def cross_text(table: CrossTable) -> str:
    """Cells first, then what moved between them and why."""
    agents = f", {len(table.agents)} agents" if len(table.agents) > 1 else ""
    episodes, tasks = counted(table.episodes, "episode"), counted(table.tasks, "task")
    lines = [f"{episodes} of {tasks}{agents}; {table.common} with a verdict in every cell"]
    lines += ["", *_cells(table)]
    if table.attribution is not None:
        lines += ["", *_attribution(table.attribution)]
    if table.transitions:
        lines += ["", f"against the first cell ({table.cells[0].cell}):"]
        for line in table.transitions:
            lines += _transition(line)
    for effect in table.effects:
        lines += ["", *_effect(effect)]
    if table.reversals:
        lines += ["", *(_reversal(line) for line in table.reversals)]
    if table.notes:
        lines += ["", *(f"note: {one_line(note)}" for note in table.notes)]
    return "\n".join(lines)


def _cells(table: CrossTable) -> list[str]:
    named = [(line.cell.grader, line.cell.data, line.cell.mode) for line in table.cells]
    widths = [max(len(word) for word in column) for column in zip(*named, strict=True)]
    names = ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)) for row in named]
    width = len(names[0])
    lines = [f"{'cell':{width}}  {'passed':>14}  {'of valid':>8}  {'all planned':17}  {'common':>8}  no verdict"]
    for name, line in zip(names, table.cells, strict=True):
        if line.absent is not None:
            lines.append(f"{name}  none: {one_line(line.absent)}")
            continue
        counts = f"{line.passed}/{line.valid} of {'≥' * table.at_least}{line.planned}"
        bounds = f"{100 * line.bounds[0]:.1f} to {100 * line.bounds[1]:.1f} %"
        without = ", ".join(f"{count} {one_line(reason)}" for reason, count in line.without.items())
        rates = f"{_share(line.rate):>8}  {bounds:17}  {_share(line.common_rate):>8}"
        lines.append(f"{name}  {counts:>14}  {rates}  {without}".rstrip())
    return lines


def _attribution(found: Attribution) -> list[str]:
    return [f"the record against the first cell: {_moves(found.pipeline)}", found.sentence]


def _moves(line: TransitionLine) -> str:
    moved = f"{line.n10} pass to fail, {line.n01} fail to pass, {line.n11} pass, {line.n00} fail"
    rates = f"net {_points(line.net)}, churn {_share(line.churn)}"
    return f"{moved}; {line.missing} without one of the two; {rates} of {line.n}"


def _transition(line: TransitionLine) -> list[str]:
    lines = [f"  {line.new}: {_moves(line)}"]
    if line.tasks:
        shown = ", ".join(f"{one_line(task.task)} (−{task.n10} +{task.n01})" for task in line.tasks[:MOST_TASKS])
        more = len(line.tasks) - MOST_TASKS
        lines.append(f"    tasks that moved: {shown}" + (f" and {more} more (--json has all)" if more > 0 else ""))
    return lines


def _effect(effect: EffectLine) -> list[str]:
    what = f"{effect.graders[0]} → {effect.graders[1]}, {effect.data[0]} → {effect.data[1]}, {effect.mode}"
    lines = [f"{what}: {_points(effect.total)} in all, on {counted(effect.n, 'episode')}"]
    first, second = effect.grader_first
    lines.append(f"  grader first: grader {_points(first)}, then data {_points(second)}")
    first, second = effect.data_first
    lines.append(f"  data first:   data {_points(first)}, then grader {_points(second)}")
    lines.append(f"  interaction:  {_points(effect.interaction)}")
    return lines + ([f"  not known: {effect.missing}"] if effect.missing else [])


def _reversal(line: ReversalLine) -> str:
    ties = f"ties: {line.ties_entered} entered, {line.ties_left} left, {line.ties_kept} kept"
    left_out = f"; {counted(line.left_out, 'agent')} without an episode in both" if line.left_out else ""
    pairs, agents = counted(line.pairs, "pair"), counted(line.agents, "agent")
    return f"{line.new}: {line.reversed} of {pairs} of {agents} change order; {ties}{left_out}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _points(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:+.1f} pp"


def regrade_text(run: str, header: RegradeHeader, transition: TransitionLine, grades: tuple[Regraded, ...]) -> str:
    """A run graded again: by what, what moved, and which trials."""
    data = f" on {one_line(header.data)}" if header.data else ""
    where = f", in {one_line(header.environment)}" if header.environment else ""
    counts = Counter(one.grade.outcome for one in grades)
    told = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    lines = [f"{run}, {header.regrade}: {one_line(header.grader)}{data}{where}", f"  now {told}"]
    lines.append(f"  {_moves(transition)}")
    moved = [one for one in grades if one.moved]
    for one in moved[:MOST_TRIALS]:
        why = one_line(one.why or one.grade.detail)
        lines.append(f"  {one.trial}  {one_line(one.task)}: {one.old.value} → {one.grade.outcome.value}  {why}")
    if len(moved) > MOST_TRIALS:
        lines.append(f"  … and {len(moved) - MOST_TRIALS} more (--json has all)")
    return "\n".join(lines)
