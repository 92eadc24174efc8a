"""Restored outcomes in the rows of a replay: :mod:`harness.replay.restore` on what was replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.records.replays import EpisodeReplay, Restored
from harness.replay.restore import NONE_RECORDED, Candidate, restore


def restored(
    rows: Sequence[EpisodeReplay], strata: Mapping[str, tuple[str, bool, str]], planned: int, threshold: float
) -> tuple[Restored, list[EpisodeReplay]]:
    """The report, and the rows with the outcomes that were given to ungraded ones. Recorded verdicts stay.

    `strata`: of each replayed episode, its termination, whether it had to write, and what became of recorded states.
    """
    candidates = [_candidate(row, strata.get(row.episode)) for row in rows]
    report, outcomes = restore(candidates, planned, threshold)
    return report, [
        row.model_copy(update={"restored": outcomes[row.episode]}) if row.episode in outcomes else row for row in rows
    ]


def _candidate(row: EpisodeReplay, stratum: tuple[str, bool, str] | None) -> Candidate:
    termination, write_required, checkpoint = stratum or ("", False, NONE_RECORDED)
    return Candidate(row.episode, termination, write_required, checkpoint, row.recorded, row.verdict)
