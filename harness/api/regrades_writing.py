"""Keeping new grades beside the old ones, and the corrections that follow from them.

What is written goes into the run's own stream: chained, verified and exported with it. The trial's result stays as it
was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.records.base import canonical_json
from harness.records.event import EventDraft
from harness.records.regrade import REGRADE, REGRADED, Correction, Regraded, RegradeHeader
from harness.records.vocabulary import Actor, Phase
from harness.runner.journal import utc_now
from harness.store.sqlite import SqliteStore


def next_regrade(store: SqliteStore, run: str) -> str:
    """The id that the run's next regrade takes. Raises StoreError."""
    return f"regrade-{1 + sum(1 for _ in store.events(store.run_id(run), [REGRADE]))}"


def keep_regrade(store: SqliteStore, run: str, header: RegradeHeader, grades: Sequence[Regraded]) -> None:
    """Write a regrade, whole or not at all. Raises StoreError, also when a live process owns the run."""
    id_, wall = store.run_id(run), header.at or utc_now()

    def draft(kind: str, actor: Actor, record: RegradeHeader | Regraded) -> EventDraft:
        return EventDraft(
            stream=id_, kind=kind, actor=actor, phase=Phase.GRADING, wall=wall, monotonic_s=0.0, payload=record.plain()
        )

    with store.own(id_):
        drafts = [draft(REGRADE, Actor.HARNESS, header)]
        store.append(drafts + [draft(REGRADED, Actor.GRADER, grade) for grade in grades])


def regrades(store: SqliteStore, run: str) -> Iterator[tuple[RegradeHeader, tuple[Regraded, ...]]]:
    """Every regrade of a run, oldest first, with its grades. Raises StoreError."""
    header: RegradeHeader | None = None
    grades: list[Regraded] = []
    for event in store.events(store.run_id(run), [REGRADE, REGRADED]):
        if event.kind == REGRADED:
            grades.append(Regraded.model_validate(event.payload))
            continue
        if header is not None:
            yield header, tuple(grades)
        header, grades = RegradeHeader.model_validate(event.payload), []
    if header is not None:
        yield header, tuple(grades)


def corrections(store: SqliteStore, run: str) -> tuple[Correction, ...]:
    """Every grade of every regrade that has another outcome than the record. Raises StoreError."""
    id_ = store.run_id(run)
    return tuple(
        correction(id_, header, grade) for header, grades in regrades(store, id_) for grade in grades if grade.moved
    )


def correction(run: str, header: RegradeHeader, grade: Regraded) -> Correction:
    """The line of the corrections file for a grade."""
    return Correction(
        run=run,
        episode=grade.trial,
        task=grade.task,
        repeat=grade.repeat,
        old=grade.old,
        old_reward=grade.old_reward,
        new=grade.grade.outcome,
        new_reward=grade.grade.reward,
        reason=grade.why or grade.grade.detail,
        grader_from=grade.old_grader or "as recorded",
        grader_to=header.grader,
        code=header.code,
        data=header.data,
        data_digest=header.data_digest,
        archive=header.archive,
        evidence=grade.evidence,
    )


def correction_lines(found: Sequence[Correction]) -> Iterator[bytes]:
    """The corrections file, a line of canonical JSON each."""
    for one in found:
        yield canonical_json(one.plain()) + b"\n"
