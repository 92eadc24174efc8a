"""A store that fails under a solver's action: the run's fault, never the solver's, and no action goes unrecorded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.protocols import Episode
from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore

from .scenes import Script, make_plan, make_row, make_services, make_task

pytestmark = pytest.mark.anyio


class FailingStore(MemoryStore):
    """Refuses events of one kind, and remembers what it let through after that."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.after: list[str] = []
        self.failed = False

    def append(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        if any(draft.kind == self.kind for draft in drafts):
            self.failed = True
            raise StoreError("the disk is full")
        if self.failed:
            self.after += [draft.kind for draft in drafts]
        return super().append(drafts)


async def stubborn_command(episode: Episode) -> None:
    for _ in range(3):
        try:
            await episode.sandbox.exec("echo 42 > /app/answer")
        except Exception:  # noqa: BLE001  # a solver that takes everything in its stride
            continue


async def plain_command(episode: Episode) -> None:
    await episode.sandbox.exec("echo 42 > /app/answer")


async def stubborn_note(episode: Episode) -> None:
    for _ in range(3):
        try:
            episode.note("thought", {"text": "hm"})
            await episode.sandbox.exec("echo 42 > /app/answer")
        except Exception:  # noqa: BLE001
            continue


@pytest.mark.parametrize(
    ("solver", "kind"), [(plain_command, "exec"), (stubborn_command, "exec"), (stubborn_note, "solver.note")]
)
async def test_it_ends_the_run_whatever_the_solver_makes_of_it(solver: Script, kind: str) -> None:
    store, task = FailingStore(kind), make_task()
    services = make_services(solver, store=store)
    plan = make_plan(task)
    store.create_run(make_row([task]))
    store.plan([plan])
    with pytest.raises(StoreError, match="the disk is full"):
        await Trial(plan, services).run()
    assert store.after == []
    assert store.trial(plan.trial).result is None  # for `resume` to end and to do again
