"""A run: one task group, one limiter, slots handed out by a schedule, every attempt a trial of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from harness.records.errors import StoreError
from harness.records.grade import TrialResult
from harness.records.run import RunRow
from harness.records.task import Task
from harness.records.trial import TrialPlan, TrialState, trial_id
from harness.runner.halting import AT_ONCE, Halting
from harness.runner.journal import Journal
from harness.runner.progress import Observer, Tally
from harness.runner.schedule import RunEvents, Schedule, Slot
from harness.runner.services import Services
from harness.runner.trial import Trial

STARTED, RESUMED, HALTED = "run.started", "run.resumed", "run.halted"
RETRY_PAUSE_S = 1.0

Ended = tuple[Slot, TrialResult]


@dataclass
class RunControl:
    """Stops a run from outside (a signal handler, a test): once softly, twice hard."""

    interrupted: bool = False
    _trials: set[Trial] = field(default_factory=set)
    _scope: anyio.CancelScope | None = None

    def interrupt(self) -> None:
        """First call: start nothing more, cancel interactions, let grading finish. Second: cancel all, shielding only
        the removal of containers; what is stored stays."""
        second, self.interrupted = self.interrupted, True
        for trial in tuple(self._trials):
            trial.interrupt(now=second)


class Run:
    """Carries out one run (or the rest of one). Raises StoreError only; everything else is in the results."""

    def __init__(
        self,
        row: RunRow,
        tasks: Mapping[str, Task],
        schedule: Schedule,
        services: Services,
        *,
        control: RunControl | None = None,
        observer: Observer | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.row, self.tasks, self.schedule, self.services = row, tasks, schedule, services
        self.control = control or RunControl()
        self.halted: str | None = None
        self._observer = observer or (lambda progress: None)
        self._journal = Journal(services.store, row.run, redactor=services.redactor)
        self._tally = tally or Tally(row.run, schedule.planned)
        self._halting = Halting()
        self._in_flight: dict[int, Slot] = {}

    async def run(self) -> None:
        """Hand out slots until the schedule is done, the run is interrupted, or a run-level fault halts it."""
        send, receive = anyio.create_memory_object_stream[Ended](len(self.tasks) + self.row.config.concurrency)
        self._show()
        try:
            async with send, receive, anyio.create_task_group() as group:
                while True:
                    self._fill(group, send)
                    if not self._in_flight:
                        break
                    slot, result = await receive.receive()
                    self._take_in(slot, result, group, send)
        except BaseExceptionGroup as failures:
            # What trials raise together has one cause; callers are promised that, not a group.
            stores, _ = failures.split(StoreError)
            if stores is not None:
                raise first_of(stores) from failures
            raise

    def _fill(self, group: TaskGroup, send: MemoryObjectSendStream[Ended]) -> None:
        while len(self._in_flight) < self.row.config.concurrency and not self._stopping:
            slot, events = self.schedule.next([slot.task for slot in self._in_flight.values()])
            self._store(events)
            if slot is None:
                return
            self._start(slot, group, send)

    @property
    def _stopping(self) -> bool:
        return self.control.interrupted or self.halted is not None

    def _start(self, slot: Slot, group: TaskGroup, send: MemoryObjectSendStream[Ended]) -> None:
        plan = self._plan(slot)
        self.services.store.plan([plan])
        self._in_flight[slot.number] = slot
        trial = Trial(plan, self.services, self._moved)
        trial.journal.note("trial.state", {"to": TrialState.PLANNED.value, **_described(plan)})
        self.control._trials.add(trial)

        async def carry_out() -> None:
            try:
                if slot.attempt > 1:
                    await anyio.sleep(RETRY_PAUSE_S)
                async with self.services.turn(lambda: trial.interrupted):
                    result = await trial.run()
            finally:
                self.control._trials.discard(trial)
            self._store([] if trial.closing is None else [trial.closing])
            await send.send((slot, result))

        group.start_soon(carry_out, name=plan.trial)

    def _take_in(self, slot: Slot, result: TrialResult, group: TaskGroup, send: MemoryObjectSendStream[Ended]) -> None:
        del self._in_flight[slot.number]
        self._tally.in_flight.pop(slot.number, None)
        retry = self._retries(slot, result)
        self.schedule.attempted(slot.number, result)
        self._halting, halt = self._halting.after(result, settled=not retry)
        if halt is not None and self.halted is None:
            self.halted, retry = halt, False
            self._journal.note(HALTED, {"why": halt})
        left_open = retry or (halt is not None and result.reason in AT_ONCE)
        if not left_open:
            self._store(self.schedule.settle(slot, result.outcome, result.reason))
        self._tally.add(result, settled=not retry)
        if retry:
            self._start(replace(slot, attempt=slot.attempt + 1), group, send)
        self._show(last=(slot.task, result))

    def _retries(self, slot: Slot, result: TrialResult) -> bool:
        """New attempts follow infrastructure faults only: an agent's own crash is never re-rolled (CASES Q02)."""
        fault = result.reason is not None and result.reason.infrastructure and not result.outcome.graded
        return fault and not self._stopping and slot.attempt <= self.row.config.retries

    def _store(self, events: RunEvents) -> None:
        if events:
            self.services.store.append([self._journal.draft(kind, payload) for kind, payload in events])

    def _plan(self, slot: Slot) -> TrialPlan:
        config, task = self.row.config, self.tasks[slot.task]
        budget = task.budget.overridden(config.budget)
        if not config.keep_cost_budgets:
            budget = budget.model_copy(update={"cost_usd": None})
        return TrialPlan(
            run=self.row.run,
            trial=trial_id(self.row.run, slot.number, slot.attempt),
            slot=slot.number,
            repeat=slot.repeat,
            attempt=slot.attempt,
            task=task,
            solver=config.solver,
            model=config.model,
            budget=budget,
            override=config.budget,
            seed=trial_seed(config.seed, slot.task, slot.repeat),
        )

    def _moved(self, plan: TrialPlan, state: TrialState) -> None:
        self._tally.in_flight[plan.slot] = (plan.task.id, state)
        self._show()

    def _show(self, last: tuple[str, TrialResult] | None = None) -> None:
        if last is not None or self._tally.estimate is None:
            estimate = self.schedule.estimate()
            self._tally.estimate = None if estimate is None else (estimate.value, estimate.lower, estimate.upper)
        self._observer(self._tally.snapshot(last, self.halted or ""))


def first_of(group: BaseExceptionGroup[StoreError]) -> StoreError:
    """The first store error in a group of groups."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


def trial_seed(seed: int, task: str, repeat: int) -> int:
    """A trial's seed: of the run's seed, the task and the repeat, never of the order in which trials happen."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{task}\n{repeat}".encode()).digest()[:4], "big")


def _described(plan: TrialPlan) -> dict[str, object]:
    task = plan.task
    return {
        "task": task.id,
        "task_version": task.version,
        "solver": plan.solver.plain(),
        "model": plan.model,
        "attempt": plan.attempt,
        "repeat": plan.repeat,
        "seed": plan.seed,
        "budget": plan.budget.plain(),
        "override": plan.override.plain(),
        "limits": task.limits.plain(),
        "network": task.limits.network.value,
        "grading": {"grader": task.grading.grader, "environment": task.grading.environment.value},
        "image": task.image.plain(),
    }
