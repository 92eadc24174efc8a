"""From evidence to availability: carried over where the fingerprint still holds, judged for a moment in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.audit.history import seconds_between
from harness.records.audit import (
    Availability,
    Cause,
    Decision,
    DecisionKind,
    Evidence,
    Fingerprint,
    Policy,
    Sentinel,
    Survivor,
    Table,
    TableRow,
    Use,
)

DAY_S = 86400.0
FLAKY_CLEARS = 5  # passes in one audit that end what was seen to pass now and then, where fewer showed it
_WORDS, _CHECKS = frozenset({"instruction"}), frozenset({"tests"})
Found = Mapping[Sentinel, Mapping[str, Evidence]]


@dataclass(frozen=True)
class Known:
    """What earlier cycles showed: evidence by task, sentinel and fingerprint, the newest; and the newest row."""

    evidence: Mapping[tuple[str, Sentinel, str], Evidence] = field(default_factory=dict)
    newest: Mapping[str, TableRow] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Iterable[Table]) -> Known:
        """From tables, newest first."""
        evidence: dict[tuple[str, Sentinel, str], Evidence] = {}
        newest: dict[str, TableRow] = {}
        for table in tables:
            for row in table.rows:
                newest.setdefault(row.task, row)
                for sentinel in Sentinel:
                    found = row.evidence(sentinel)
                    if found is not None:
                        evidence.setdefault((row.task, sentinel, found.fingerprint), found)
        return cls(evidence, newest)


@dataclass(frozen=True)
class Due:
    """Why a task has to be audited by a sentinel, or that it need not be."""

    tasks: tuple[str, ...]
    why: Mapping[str, str]
    back: Mapping[str, str]  # tasks in a state that was green before, and since when that is known


def due(fingerprints: Mapping[str, Fingerprint], sentinel: Sentinel, known: Known, at: str, policy: Policy) -> Due:
    """Tasks that a targeted audit must run: of no known state, or of one that is red or stale."""
    why: dict[str, str] = {}
    back: dict[str, str] = {}
    for task, now in fingerprints.items():
        before = known.newest.get(task)
        evidence = known.evidence.get((task, sentinel, now.digest))
        changed = before is not None and before.fingerprint.digest != now.digest
        if evidence is None:
            parts = now.changed(before.fingerprint) if before is not None else ()
            why[task] = f"changed: {', '.join(parts)}" if parts else "never audited"
        elif is_stale(evidence, at, policy):
            why[task] = f"stale: last audited {evidence.at[:10]}"
        elif sentinel is Sentinel.GOLD and evidence.cause is not None:
            why[task] = "not green"
        elif changed:
            back[task] = f"back to a state that was audited on {evidence.at[:10]}"
    return Due(tuple(why), why, back)


def is_stale(evidence: Evidence, at: str, policy: Policy) -> bool:
    """Whether evidence is too far from a moment to say anything about it, in either direction."""
    return abs(seconds_between(evidence.at, at)) > policy.stale_days * DAY_S


def build_rows(
    fingerprints: Mapping[str, Fingerprint],
    families: Mapping[str, str],
    found: Found,
    known: Known,
    judged: Judging,
    notes: Mapping[str, str],
) -> tuple[TableRow, ...]:
    """A row per task: what was found now, else what is known of the same fingerprint; judged, with its first date."""
    rows = []
    for task, now in fingerprints.items():

        def newest(sentinel: Sentinel, task: str = task, now: Fingerprint = now) -> Evidence | None:
            before = known.evidence.get((task, sentinel, now.digest))
            seen = found.get(sentinel, {}).get(task)
            return before if seen is None else pooled(seen, before, judged.repaired.get(task))

        row = TableRow(
            task=task,
            family=families[task],
            fingerprint=now,
            gold=newest(Sentinel.GOLD),
            null=newest(Sentinel.NULL),
            mutant=newest(Sentinel.MUTANT),
            note=notes.get(task) or _recovered(found, known.evidence.get((task, Sentinel.GOLD, now.digest)), task),
            drift=_drift(task, now, known),
        )
        cause = judge(row, judged).cause
        before = known.newest.get(task)
        since = before.since if before is not None and before.cause is cause else None
        since = None if cause is None else since or judged.at
        rows.append(row.model_copy(update={"cause": cause, "since": since}))
    return tuple(rows)


def _recovered(found: Found, before: Evidence | None, task: str) -> str:
    """Gold passes now and did not before, on the very same task: its surroundings are back, or it is flaky."""
    seen = found.get(Sentinel.GOLD, {}).get(task)
    if seen is None or seen.cause is not None or before is None or before.cause is not Cause.TESTS_FAILED:
        return ""
    return f"gold failed on {before.at[:10]} on the same task: gold with --repeat {FLAKY_CLEARS} tells if it is flaky"


def pooled(seen: Evidence, before: Evidence | None, repaired: str | None) -> Evidence:
    """New evidence; of a task seen to pass now and then, together with what showed it.

    One pass more says little about a task that passed 3 of 5. It is flaky until one audit has run it as often (or five
    times) without a failure, or until a person says that it was repaired.
    """
    if before is None or before.cause is not Cause.FLAKY or seen.cause not in (None, Cause.FLAKY):
        return seen
    if repaired is not None and seconds_between(before.at, repaired) > 0:
        return seen
    if seen.cause is None and seen.attempts >= min(before.attempts, FLAKY_CLEARS):
        return seen
    passed, attempts = seen.passed + before.passed, seen.attempts + before.attempts
    return seen.model_copy(
        update={
            "passed": passed,
            "graded": seen.graded + before.graded,
            "attempts": attempts,
            "cause": Cause.FLAKY,
            "detail": f"gold passed {passed} of {attempts}, most lately {seen.passed} of {seen.attempts}",
            "trials": (*before.trials, *seen.trials),
        }
    )


def _drift(task: str, now: Fingerprint, known: Known) -> str:
    """Whether the instruction changed and its check did not since the task was last green, or the other way round.

    Gold cannot see it: nothing in a task says that the two were meant to go together.
    """
    before = known.newest.get(task)
    if before is None:
        return ""
    if before.fingerprint.version == now.version:
        return before.drift
    green = before.gold is not None and before.gold.cause is None
    if not green or (task, Sentinel.GOLD, now.digest) in known.evidence:  # a state that is known stands for itself
        return ""
    changed = frozenset(now.changed(before.fingerprint))
    words, checks = changed & _WORDS, changed & _CHECKS
    if bool(words) == bool(checks):
        return "" if words else before.drift
    one, other = ("instruction", "tests") if words else ("tests", "instruction")
    since = before.gold.at[:10] if before.gold is not None else ""
    return f"the {one} changed since {since}, the {other} did not"


@dataclass(frozen=True)
class Judging:
    """For which moment, by which policy and decisions a table is read."""

    at: str
    policy: Policy
    retired: frozenset[str] = frozenset()
    accepted: frozenset[tuple[str, str, str]] = frozenset()  # task, its version, the mutant's digest
    repaired: Mapping[str, str] = field(default_factory=dict)  # tasks that were ever repaired, and when last

    @classmethod
    def by(cls, at: str, policy: Policy, decisions: Sequence[Decision]) -> Judging:
        """Retirement holds from its day on, until a repair; an accepted mutant is accepted for all time."""
        retired: set[str] = set()
        accepted = set()
        repaired: dict[str, str] = {}
        for decision in decisions:
            if decision.kind is DecisionKind.ACCEPT and decision.mutant is not None:
                accepted.add((decision.task, decision.task_version, decision.mutant))
            elif seconds_between(decision.at, at) >= 0:
                change = retired.add if decision.kind is DecisionKind.RETIRE else retired.discard
                change(decision.task)
                if decision.kind is DecisionKind.REPAIR:
                    repaired[decision.task] = decision.at
        return cls(at, policy, frozenset(retired), frozenset(accepted), repaired)

    def unaccepted(self, row: TableRow) -> tuple[Survivor, ...]:
        """Surviving mutants of the task as it is that nobody accepted as equivalent."""
        survivors = row.mutant.survivors if row.mutant is not None else ()
        version = row.fingerprint.version
        return tuple(one for one in survivors if (row.task, version, one.digest) not in self.accepted)

    def disqualifying(self, row: TableRow) -> tuple[Survivor, ...]:
        """Those of them that make the task unavailable, by the policy."""
        if self.policy.mutants == "none":
            return ()
        return tuple(one for one in self.unaccepted(row) if one.declared or self.policy.mutants == "all")


def judge(row: TableRow, judging: Judging) -> Availability:
    """Whether a pass or a fail on the task meant anything at that moment, and if not, why."""
    gold, null = row.gold, row.null
    survivors = judging.disqualifying(row)
    cause: Cause | None = None
    detail, trials = "", gold.trials if gold is not None else ()
    if row.task in judging.retired:
        cause = Cause.RETIRED
    elif gold is None:
        cause, detail = Cause.NEVER, "gold never ran on the task as it is"
    elif is_stale(gold, judging.at, judging.policy):
        cause, detail = Cause.STALE, f"gold ran on {gold.at[:10]}"
    elif gold.cause is not None:
        cause, detail = gold.cause, gold.detail
    elif null is None:
        cause, detail = Cause.NEVER, "null never ran on the task as it is"
    elif is_stale(null, judging.at, judging.policy):
        cause, detail = Cause.STALE, f"null ran on {null.at[:10]}"
    elif null.cause is not None:
        cause, detail, trials = null.cause, null.detail, null.trials
    elif survivors:
        cause, trials = Cause.MUTANT_PASSED, tuple(one.trial for one in survivors)
        detail = "; ".join(one.name for one in survivors)
    uses = gold.uses if gold is not None else ()
    return Availability(
        task=row.task,
        task_version=row.fingerprint.version,
        cause=cause,
        detail=detail,
        since=None if cause is None else row.since if row.cause is cause else judging.at,
        measured=gold.at if gold is not None else None,
        trials=trials,
        at_risk=risky(uses, judging.policy) if gold is not None and gold.cause is None else (),
        uses=uses,
    )


def risky(uses: Iterable[Use], policy: Policy) -> tuple[Use, ...]:
    """Allowances that gold nearly uses up."""
    return tuple(use for use in uses if use.share > policy.at_risk)


def availability(table: Table, judging: Judging) -> dict[str, Availability]:
    """Every task of a table, judged."""
    return {row.task: judge(row, judging) for row in table.rows}
