"""Does an archive contradict itself? Rules over its runs and episodes, whatever the format. Pure.

What a format's own importer finds (labels, headers) comes with its episodes; here is what holds for all: no trial
twice, rewards in range, times in order, usage where there is a place for it, totals that add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.importers.steps import number
from harness.records.archive import ArchiveEpisode, ArchiveItem, ArchiveRun, Finding, Step
from harness.records.vocabulary import Outcome

_SAME_TIMES = 3  # episodes with one and the same beginning and end
_SLACK_S = 2.0
_OUTCOMES = tuple(Outcome)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # of times without a zone, which are read as UTC
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TOLD = 1000  # findings of one rule


@dataclass
class _Seen:
    """What has been seen of one run."""

    run: ArchiveRun
    cells: dict[tuple[str, int, int], bytes] = field(default_factory=dict)  # see :func:`_seal`
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    times: Counter[int] = field(default_factory=Counter)  # by the hash of beginning and end
    alike: dict[int, tuple[str, str]] = field(default_factory=dict)  # those that came more than once
    without_usage: int = 0
    expecting_usage: int = 0
    cost_usd: float | None = 0.0  # None: of an episode it is not known
    max_repeat: int = 0


class Consistency:
    """Takes the items of an archive one by one; :meth:`findings` after the last."""

    def __init__(self) -> None:
        self.episodes = 0
        self._found: list[Finding] = []
        self._told: Counter[str] = Counter()
        self._runs: dict[str, _Seen] = {}

    def take(self, item: ArchiveItem, steps: Sequence[Step] | None = None) -> None:
        """Look at one item; `steps` are those of an episode, where they have been asked for already."""
        if isinstance(item, Finding):
            self._tell(item)
        elif isinstance(item, ArchiveRun):
            known = self._runs.get(item.key)
            if known is None:
                self._runs[item.key] = _Seen(item)
            else:
                known.run.stated.update(item.stated)
        else:
            self.episodes += 1
            seen = self._runs.setdefault(item.run, _Seen(ArchiveRun(item.run, item.run)))
            steps = item.steps() if steps is None else steps
            for finding in (*item.findings, *_of_episode(item, steps), *_repeated(item, seen)):
                self._tell(finding)
            _add(item, seen, steps)

    def findings(self) -> tuple[Finding, ...]:
        """Everything that was found, in order, and what only the whole shows."""
        found = list(self._found)
        for seen in self._runs.values():
            found += _of_run(seen)
        found += [
            Finding(rule=rule, place="", what=f"{count - _MOST_TOLD} more like these")
            for rule, count in self._told.items()
            if count > _MOST_TOLD
        ]
        return tuple(found)

    def _tell(self, finding: Finding) -> None:
        self._told[finding.rule] += 1
        if self._told[finding.rule] <= _MOST_TOLD:
            self._found.append(finding)


def _add(item: ArchiveEpisode, seen: _Seen, steps: Sequence[Step]) -> None:
    seen.cells.setdefault((item.task.id, item.repeat, item.attempt), _seal(item))
    seen.outcomes[item.outcome] += 1
    seen.cost_usd = None if seen.cost_usd is None or item.cost_usd is None else seen.cost_usd + item.cost_usd
    seen.max_repeat = max(seen.max_repeat, item.repeat)
    if item.started and item.finished:
        times = hash((item.started, item.finished))
        seen.times[times] += 1
        if seen.times[times] > 1:
            seen.alike[times] = item.started, item.finished
    if item.expects_usage:
        seen.expecting_usage += 1
        seen.without_usage += item.usage is None and all(step.payload.get("usage_raw") is None for step in steps)


def _seal(item: ArchiveEpisode) -> bytes:
    """Outcome and digest of a record, in few bytes: there may be a hundred thousand."""
    return bytes((_OUTCOMES.index(item.outcome),)) + bytes.fromhex(item.source.sha256.removeprefix("sha256:"))


def _repeated(item: ArchiveEpisode, seen: _Seen) -> Iterator[Finding]:
    known = seen.cells.get((item.task.id, item.repeat, item.attempt))
    if known is None:
        return
    outcome = _OUTCOMES[known[0]]
    if known[1:] == _seal(item)[1:]:
        yield Finding(
            rule="trial.repeated", place=item.place, what="the same record once more", remedy="it counts once"
        )
    elif outcome is item.outcome:
        yield Finding(rule="trial.duplicate", place=item.place, what="another record of this trial came before it")
    else:
        what = f"says {item.outcome.value}; another record of this trial said {outcome.value}"
        remedy = "find out which one is meant; neither counts as a verdict"
        yield Finding(rule="trial.conflict", place=item.place, what=what, remedy=remedy)


def _of_episode(item: ArchiveEpisode, steps: Sequence[Step]) -> Iterator[Finding]:
    if item.reward is not None and not 0.0 <= item.reward <= 1.0:
        yield Finding(rule="reward.range", place=item.place, what=f"reward {item.reward:g} is not between 0 and 1")
    if item.cost_usd is not None and item.cost_usd < 0:
        yield Finding(rule="cost.range", place=item.place, what=f"cost {item.cost_usd:g} is below 0")
    yield from _times(item, steps)
    yield from _costs(item, steps)


def _times(item: ArchiveEpisode, steps: Sequence[Step]) -> Iterator[Finding]:
    start, end = instant(item.started), instant(item.finished)
    if start is not None and end is not None:
        between = (end - start).total_seconds()
        if between < 0:
            yield Finding(rule="time.order", place=item.place, what=f"ends {-between:g} s before it begins")
        elif item.seconds is not None and abs(between - item.seconds) > max(_SLACK_S, 0.05 * between):
            what = f"duration {item.seconds:g} s, but {between:g} s lie between its beginning and its end"
            yield Finding(rule="time.duration", place=item.place, what=what)
    if item.seconds is not None and item.seconds < 0:
        yield Finding(rule="time.order", place=item.place, what=f"duration {item.seconds:g} s is below 0")
    if start is None or end is None:
        return
    # Times of one form are in order when their texts are: only others have to be read.
    doubtful = [step.wall for step in steps if step.wall and not item.started <= step.wall <= item.finished]
    outside = sum(_outside(wall, start, end) for wall in doubtful)
    if outside:
        what = f"{outside} of its events have times outside its own beginning and end"
        yield Finding(rule="time.events", place=item.place, what=what)


def _outside(wall: str, start: datetime, end: datetime) -> bool:
    moment = instant(wall)
    return moment is not None and not -_SLACK_S <= (moment - start).total_seconds() <= (
        (end - start).total_seconds() + _SLACK_S
    )


def _costs(item: ArchiveEpisode, steps: Sequence[Step]) -> Iterator[Finding]:
    calls = [step.payload.get("cost_usd") for step in steps if step.kind == "model.call"]
    if item.cost_usd is None or not calls or any(cost is None for cost in calls):
        return
    total = sum(float(cost) for cost in calls if cost is not None)
    if abs(total - item.cost_usd) > max(1e-6, 0.005 * item.cost_usd):
        what = f"its cost is ${item.cost_usd:.6f}, but its calls cost ${total:.6f} together"
        yield Finding(rule="totals.cost", place=item.place, what=what, remedy="assay bill says which sum it is")


def _of_run(seen: _Seen) -> Iterator[Finding]:
    place = seen.run.suite + (f" ({seen.run.key})" if seen.run.key not in ("run", seen.run.suite) else "")
    for times, (start, end) in seen.alike.items():
        count = seen.times[times]
        if count < _SAME_TIMES:
            continue
        what = f"{count} episodes begin at {start} and end at {end}: no times that were measured"
        yield Finding(rule="time.placeholder", place=place, what=what, remedy="treat the times as unknown")
    if seen.expecting_usage and seen.without_usage:
        what = f"{seen.without_usage} of {seen.expecting_usage} episodes have no token usage at all"
        yield Finding(rule="usage.missing", place=place, what=what, remedy="their cost is unknown, not 0")
    yield from _gaps(seen, place)
    yield from _totals(seen, place)


def _gaps(seen: _Seen, place: str) -> Iterator[Finding]:
    if not seen.run.tasks and seen.run.repeats is None:
        return  # nobody said what was planned
    tasks = dict.fromkeys((*seen.run.tasks, *(task for task, _, _ in seen.cells)))
    repeats = max(seen.run.repeats or 1, seen.max_repeat + 1)
    have = {(task, repeat) for task, repeat, _ in seen.cells}
    lacking = [(task, repeat) for task in tasks for repeat in range(repeats) if (task, repeat) not in have]
    if lacking and len(lacking) < len(tasks) * repeats:
        named = ", ".join(f"{task}/{repeat}" for task, repeat in lacking[:10])
        what = f"{len(lacking)} of {len(tasks) * repeats} planned trials are not there: {named}"
        yield Finding(rule="trial.missing", place=place, what=what + (" …" if len(lacking) > 10 else ""))


def _totals(seen: _Seen, place: str) -> Iterator[Finding]:
    """Stated totals against those of the records."""
    stated, outcomes = seen.run.stated, seen.outcomes
    passed, graded = outcomes[Outcome.PASSED], outcomes[Outcome.PASSED] + outcomes[Outcome.FAILED]
    accuracy, total = number(stated.get("accuracy")), sum(outcomes.values())
    if accuracy is not None and total:
        readings = {"graded": graded, "recorded": total, "planned": max(total, int(number(stated.get("planned")) or 0))}
        close = [name for name, size in readings.items() if size and abs(passed / size - accuracy) < 5e-4]
        if not close:
            what = (
                f"states an accuracy of {accuracy:.4f}; its records give {passed}/{graded} graded, {passed}/{total} all"
            )
            yield Finding(rule="totals.accuracy", place=place, what=what)
        elif "graded" not in close:
            what = f"its accuracy of {accuracy:.4f} counts {total - graded} episodes without a grade as failed"
            yield Finding(rule="totals.zero_filled", place=place, what=what, remedy="report bounds with the coverage")
    for key, value in (("n_passed", passed), ("n_episodes", total)):
        said = number(stated.get(key))
        if said is not None and said != value:
            what = f"states {key.removeprefix('n_')} {said:g}, its records give {value}"
            yield Finding(rule="totals.count", place=place, what=what)
    cost = number(stated.get("total_cost"))
    if cost is None or not total or seen.cost_usd is None:
        return
    if abs(seen.cost_usd - cost) > max(1e-6, 0.005 * cost):
        what = f"states a total cost of ${cost:.4f}; its episodes cost ${seen.cost_usd:.4f} together"
        yield Finding(rule="totals.cost", place=place, what=what, remedy="assay bill says which sum it is")


def instant(text: str) -> datetime | None:
    """A time from ISO 8601, in UTC; one without a zone is read as UTC. None for what is no time."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def since_epoch_s(text: str) -> float | None:
    """The same in seconds since 1970, for who has thousands of them: no object with a zone is made."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if moment is None:
        return None
    return (moment - (_EPOCH if moment.tzinfo is None else _EPOCH_UTC)).total_seconds()
