"""What `assay gc` may remove: decided from owners alone, carried out on a provider that may refuse."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from harness.api.leftovers import Judgement, Standing, judge, removable, sweep, taken_up
from harness.protocols import Sandbox
from harness.records.errors import SandboxFault
from harness.records.execution import ImageFacts, Leftover, Owner, SandboxSpec
from harness.records.task import ImagePin
from harness.sandbox.ownership import MachineFacts, this_process
from harness.sandbox.process_tree import ProcessEntry, ProcessKey

ME = Owner(host="here", machine="m1", boot="b1", namespace=7, pid=100, started=1000)
RUNNING = ProcessEntry(ProcessKey(200, 2000), parent=1, state="S")
ZOMBIE = ProcessEntry(ProcessKey(201, 2010), parent=1, state="Z")
ENDING = ProcessEntry(ProcessKey(202, 2020), parent=1, state="Z", threads=2)
FACTS = MachineFacts(ME, {200: RUNNING, 201: ZOMBIE, 202: ENDING, 203: None})


def owned_by(**changes: object) -> Leftover:
    owner = ME.model_copy(update={"pid": 200, "started": 2000, **changes})
    return Leftover(id="c1", kind="container", name="assay-r1", run="r1", trial="r1.0000.1", owner=owner)


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, Standing.ALIVE),
        ({"started": 1999}, Standing.DEAD),  # the number is another's now
        ({"pid": 201, "started": 2010}, Standing.DEAD),  # killed, and nobody has collected it
        ({"pid": 202, "started": 2020}, Standing.ALIVE),  # its first thread has ended, another runs
        ({"pid": 203, "started": 1}, Standing.ALIVE),  # somebody's, who hides it
        ({"pid": 204}, Standing.DEAD),
        ({"boot": "b0"}, Standing.DEAD),  # the machine started anew since
        ({"boot": "b0", "pid": 204}, Standing.DEAD),
        ({"host": "there"}, Standing.ELSEWHERE),
        ({"host": "there", "boot": "b2"}, Standing.ELSEWHERE),
        ({"machine": "m2", "boot": "b2"}, Standing.ELSEWHERE),  # a clone of the same name
        ({"namespace": 8, "pid": 204}, Standing.ELSEWHERE),  # in a container on this machine
        ({"boot": ""}, Standing.ELSEWHERE),  # a system that does not tell
    ],
)
def test_the_owner_decides(changes: dict[str, object], standing: Standing) -> None:
    judged = judge(owned_by(**changes), FACTS, leased=False)
    assert judged.standing is standing
    assert judged.why


def test_an_unreadable_label_is_nobodys_to_judge() -> None:
    leftover = owned_by().model_copy(update={"owner": None})
    assert judge(leftover, FACTS, leased=False).standing is Standing.ELSEWHERE


@given(
    st.builds(
        Owner,
        host=st.sampled_from(["here", "there"]),
        machine=st.sampled_from(["m1", "m2", ""]),
        boot=st.sampled_from(["b1", "b2", ""]),
        namespace=st.sampled_from([7, 8]),
        pid=st.sampled_from([100, 200, 201, 202, 203, 204]),
        started=st.sampled_from([1000, 2000, 2010, 2020]),
    ),
    st.booleans(),
)
def test_a_live_run_is_never_removed(owner: Owner, named: bool) -> None:
    leftover = owned_by().model_copy(update={"owner": owner})
    assert not removable(judge(leftover, FACTS, leased=True), named=named)
    judged = judge(leftover, FACTS, leased=False)
    if removable(judged, named=False):
        here = (owner.host, owner.machine) == (ME.host, ME.machine)
        entry = FACTS.processes.get(owner.pid)
        same = owner.boot == ME.boot and entry is not None and entry.alive and entry.key.started == owner.started
        assert here
        assert not same
    assert removable(judged, named=True) == (judged.standing is not Standing.ALIVE)


def test_naming_a_run_does_not_make_the_living_removable() -> None:
    assert not removable(Judgement(Standing.ALIVE, ""), named=True)


@dataclass
class Engine:
    """A provider that only holds leftovers; those in `stubborn` stay without a word, those in `refused` with one."""

    held: list[Leftover]
    stubborn: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    away: bool = False
    name: str = "fake"
    removed: list[str] = field(default_factory=list)

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        raise NotImplementedError

    async def image(self, pin: ImagePin) -> ImageFacts | None:
        raise NotImplementedError

    async def leftovers(self) -> tuple[Leftover, ...]:
        if self.away:
            raise SandboxFault("nobody answers", reason="engine.unreachable")
        return tuple(self.held)

    async def remove(self, leftover: Leftover) -> None:
        if leftover.id in self.refused:
            raise SandboxFault("it has active endpoints", reason="engine.error")
        self.removed.append(leftover.id)
        self.held = [item for item in self.held if item.id != leftover.id or item.id in self.stubborn]


def leftovers() -> list[Leftover]:
    """A dead one, a living one and a foreign one, as of this very machine."""
    me = this_process()
    dead = me.model_copy(update={"started": me.started + 1})
    far = me.model_copy(update={"host": "far-away"})
    return [
        Leftover(id=name, kind="container", name=name, run=name, owner=owner)
        for name, owner in (("dead", dead), ("mine", me), ("far", far))
    ]


@pytest.mark.anyio
async def test_only_the_dead_are_removed_and_the_rest_is_told() -> None:
    engine = Engine(leftovers())
    swept = await sweep(engine, leased=lambda run: False)
    assert [item.id for item in swept.removed] == engine.removed == ["dead"]
    assert {item.id: item.standing for item in swept.left} == {"mine": "alive", "far": "elsewhere"}
    assert str(os.getpid()) in next(item.why for item in swept.left if item.id == "mine")
    assert not swept.failed


@pytest.mark.anyio
async def test_a_dry_run_removes_nothing() -> None:
    engine = Engine(leftovers())
    swept = await sweep(engine, leased=lambda run: False, dry_run=True)
    assert [item.id for item in swept.removed] == ["dead"]
    assert not engine.removed


@pytest.mark.anyio
async def test_a_named_run_may_be_of_another_machine_but_not_alive() -> None:
    engine = Engine(leftovers())
    assert [item.id for item in (await sweep(engine, leased=lambda run: False, run="far", named=True)).removed] == [
        "far"
    ]
    swept = await sweep(engine, leased=lambda run: False, run="mine", named=True)
    assert (swept.removed, [item.id for item in swept.left]) == ((), ["mine"])
    assert engine.removed == ["far"]


@pytest.mark.anyio
async def test_what_this_store_knows_to_be_running_stays() -> None:
    engine = Engine(leftovers())
    swept = await sweep(engine, leased=lambda run: run == "dead")
    assert not swept.removed
    assert not engine.removed


@pytest.mark.anyio
async def test_what_could_not_be_removed_is_told_apart() -> None:
    engine = Engine(leftovers(), stubborn=("dead",))
    swept = await sweep(engine, leased=lambda run: False)
    assert not swept.removed
    assert [item.id for item in swept.failed] == ["dead"]


@pytest.mark.anyio
async def test_one_that_will_not_go_keeps_no_other() -> None:
    first, *rest = leftovers()
    engine = Engine([first.model_copy(update={"id": "used", "kind": "network"}), first, *rest], refused=("used",))
    swept = await sweep(engine, leased=lambda run: False)
    assert [item.id for item in swept.removed] == ["dead"]
    (failed,) = swept.failed
    assert failed.id == "used"
    assert "active endpoints" in failed.why


@pytest.mark.anyio
async def test_a_run_is_taken_up_without_what_a_dead_process_left_however_late_it_came() -> None:
    dead, mine, far = leftovers()
    engine = Engine([dead, mine, far])
    async with taken_up(engine, "dead"):
        assert engine.removed == ["dead"]
        engine.held.append(dead.model_copy(update={"id": "late"}))  # asked for before the death, made after it
    assert engine.removed == ["dead", "late"]


@pytest.mark.anyio
async def test_an_engine_that_has_gone_by_the_end_is_told_and_changes_nothing() -> None:
    engine = Engine([])
    with structlog.testing.capture_logs() as logs:
        async with taken_up(engine, "r"):
            engine.away = True
    assert [entry["event"] for entry in logs] == ["leftovers.not_swept"]
    with pytest.raises(SandboxFault):
        async with taken_up(engine, "r"):
            raise AssertionError("must not begin")
