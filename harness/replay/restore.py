"""Restoring outcomes of episodes that nobody graded: Algorithm 1 of SOURCES S2. Pure.

Recorded verdicts are kept. Graded episodes measure how often a replay's grade is the recorded one, stratum by stratum:
by how the episode ended, whether its task requires a write, and whether recorded answers were matched. An ungraded
episode gets its replay's grade only where the graded ones of its stratum bear it out: where the one-sided 95 % lower
bound (Clopper–Pearson) of their agreement reaches the stated fidelity. All others stay in the interval
[m/n, (m + n − v)/n].

The bound takes episodes as independent. Trials of one task are not quite; a threshold is no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.records.replays import Restored, Stratum
from harness.records.vocabulary import Outcome
from harness.stats import valid_share
from harness.stats.proportion import clopper_pearson

MATCHED, PARTLY, NONE_RECORDED = "matched", "partly", "none recorded"  # what was recorded to compare with
THRESHOLD = 0.95
_TWO_SIDED = 0.90  # whose lower end is the one-sided bound of 95 %


@dataclass(frozen=True, slots=True)
class Candidate:
    """One episode. `replayed` is its replay's verdict, None where there is none."""

    episode: str
    termination: str
    write_required: bool
    checkpoint: str
    recorded: Outcome
    replayed: Outcome | None

    @property
    def stratum(self) -> tuple[str, bool, str]:
        return self.termination or "unknown", self.write_required, self.checkpoint


@dataclass
class _Members:
    compared: list[Candidate] = field(default_factory=list)  # with both verdicts
    ungraded: list[Candidate] = field(default_factory=list)


def restore(
    candidates: Sequence[Candidate], planned: int, threshold: float = THRESHOLD
) -> tuple[Restored, dict[str, Outcome]]:
    """The report, and the restored outcome by episode. Raises StatsError when fewer are planned than there are."""
    strata: dict[tuple[str, bool, str], _Members] = {}
    for candidate in candidates:
        members = strata.setdefault(candidate.stratum, _Members())
        if not candidate.recorded.graded:
            members.ungraded.append(candidate)
        elif candidate.replayed is not None:
            members.compared.append(candidate)
    outcomes: dict[str, Outcome] = {}
    lines = []
    for key, members in sorted(strata.items()):
        line = _stratum(key, members, threshold)
        lines.append(line)
        if line.restored:
            outcomes |= {one.episode: one.replayed for one in members.ungraded if one.replayed is not None}
    recorded = [candidate.recorded for candidate in candidates if candidate.recorded.graded]
    passed = sum(outcome is Outcome.PASSED for outcome in recorded)
    more = sum(outcome is Outcome.PASSED for outcome in outcomes.values())
    before = valid_share(planned, len(recorded), passed).bounds
    after = valid_share(planned, len(recorded) + len(outcomes), passed + more).bounds
    report = Restored(
        threshold=threshold,
        strata=tuple(lines),
        restored=len(outcomes),
        restored_passed=more,
        before=(before.lower, before.upper),
        after=(after.lower, after.upper),
    )
    return report, outcomes


def _stratum(key: tuple[str, bool, str], members: _Members, threshold: float) -> Stratum:
    graded = len(members.compared)
    agree = sum(one.replayed is one.recorded for one in members.compared)
    lower = float(clopper_pearson(agree, graded, _TWO_SIDED)[0])
    able = sum(one.replayed is not None for one in members.ungraded)
    why = ""
    if members.ungraded:
        if not graded:
            why = "no graded episode is like them"
        elif lower < threshold:
            why = f"the bound of their fidelity, {lower:.3f}, is below {threshold:g}"
        elif able == 0:
            why = "no replay of theirs has a grade"
    return Stratum(
        termination=key[0],
        write_required=key[1],
        checkpoint=key[2],
        graded=graded,
        agree=agree,
        fidelity=agree / graded if graded else None,
        lower=lower,
        ungraded=len(members.ungraded),
        restored=0 if why else able,
        why=why,
    )
