"""Keeping a replay: in the stream of the run that it is of, chained and exported with it, beside the old scores.

New grades are kept as a regrade, so that corrections follow from them (:mod:`harness.api.regrades_writing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.api.archive_reading import legal_task_id
from harness.api.regrades_writing import keep_regrade, next_regrade
from harness.records.base import Record, digest_of
from harness.records.event import EventDraft
from harness.records.grade import Grade
from harness.records.regrade import Regraded, RegradeHeader
from harness.records.replays import REPLAY, REPLAYED, EpisodeReplay, ReplayHeader, ReplayReport
from harness.records.vocabulary import Actor, Outcome, Phase
from harness.report.summary import last_attempts
from harness.store.sqlite import SqliteStore


def runs_of(store: SqliteStore, report: ReplayReport) -> tuple[str, ...]:
    """The runs of the store that were imported from the archive that was replayed, or the run itself."""
    header = report.header
    names = [row.run for row in store.runs() if row.run == header.path or _source(row.config.extra) == header.archive]
    return tuple(names)


def keep_replay(store: SqliteStore, run: str, report: ReplayReport) -> int:
    """Write the replay into a run's stream, whole or not at all; returns how many episodes of the run are in it.

    Raises StoreError, also when a live process owns the run.
    """
    rows = tuple(linked(store, run, report))
    with store.own(run):
        store.append(
            [
                _draft(run, REPLAY, Actor.HARNESS, report.header, report.header.at),
                *(_draft(run, REPLAYED, Actor.ENVIRONMENT, row, report.header.at) for row in rows),
            ]
        )
    if report.header.grader and rows:
        regrade = next_regrade(store, run)
        keep_regrade(store, run, _regrade_header(regrade, report.header), [_regraded(regrade, row) for row in rows])
    return len(rows)


def kept_replays(store: SqliteStore, run: str) -> Iterator[tuple[ReplayHeader, tuple[EpisodeReplay, ...]]]:
    """Every replay of a run that was kept, oldest first. Raises StoreError."""
    header: ReplayHeader | None = None
    rows: list[EpisodeReplay] = []
    for event in store.events(store.run_id(run), [REPLAY, REPLAYED]):
        if event.kind == REPLAYED:
            rows.append(EpisodeReplay.model_validate(event.payload))
            continue
        if header is not None:
            yield header, tuple(rows)
        header, rows = ReplayHeader.model_validate(event.payload), []
    if header is not None:
        yield header, tuple(rows)


def _source(extra: Mapping[str, object]) -> str:
    found = extra.get("import")
    return str(found.get("digest")) if isinstance(found, dict) else ""


def linked(store: SqliteStore, run: str, report: ReplayReport) -> Iterator[EpisodeReplay]:
    """The rows with the trials that they are of. An archive with several runs names the run in each episode."""
    trials = {(row.task, row.repeat): row.trial for row in last_attempts(store.trials(run))}
    source = store.run(run).config.extra.get("import")
    key = str(source.get("key", "")) if isinstance(source, dict) else ""
    for row in report.episodes:
        if row.trial is not None:
            yield row
            continue
        of_run, colon, _ = row.episode.partition(f":{row.task}/")
        trial = trials.get((legal_task_id(row.task), row.repeat))
        if trial is not None and (not colon or of_run == key):
            yield row.model_copy(update={"trial": trial})


def _draft(stream: str, kind: str, actor: Actor, record: Record, wall: str) -> EventDraft:
    return EventDraft(
        stream=stream, kind=kind, actor=actor, phase=Phase.REPLAY, wall=wall, monotonic_s=0.0, payload=record.plain()
    )


def _regrade_header(regrade: str, header: ReplayHeader) -> RegradeHeader:
    return RegradeHeader(
        regrade=regrade,
        grader=header.grader,
        code=header.grader_code,
        rule=header.rule,
        data=header.tasks,
        environment=header.environment,
        environment_code=header.environment_code,
        mode=header.mode,
        archive=header.archive,
        at=header.at,
    )


def _regraded(regrade: str, row: EpisodeReplay) -> Regraded:
    refused = Grade(grader="", outcome=Outcome.INVALID, detail=row.fidelity.detail)  # without a replay: its mode
    grade = row.grade or refused
    moved = grade.outcome is not row.recorded
    return Regraded(
        regrade=regrade,
        trial=row.trial or "",
        task=row.task,
        repeat=row.repeat,
        old=row.recorded,
        old_reward=row.reward,
        grade=grade,
        evidence=digest_of({"end_state": row.end_state, "fidelity": row.fidelity.plain()}),
        why=(grade.detail or "by the replay's end state") if moved else "",
    )
