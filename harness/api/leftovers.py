"""What dead runs left in the engine: who owns it, what may be removed, and its removal.

Only the owner's process decides, never the store that somebody happens to look from: a run of another store or another
user is as alive as its process is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import anyio
import structlog

from harness.api.containers import open_provider
from harness.protocols import SandboxProvider
from harness.records.base import Record
from harness.records.errors import SandboxFault
from harness.records.execution import Leftover
from harness.sandbox.ownership import MachineFacts, look_around
from harness.store.leases import Leases

log = structlog.get_logger(__name__)

Leased = Callable[[str], bool]


class Standing(StrEnum):
    """Whether the process that owns a leftover is there."""

    DEAD = "dead"
    ALIVE = "alive"
    ELSEWHERE = "elsewhere"  # not this machine's to say


@dataclass(frozen=True)
class Judgement:
    """A standing, and why, in words."""

    standing: Standing
    why: str


class SweptItem(Record):
    """One leftover and what became of it."""

    id: str
    kind: str  # "container", "network"
    name: str
    run: str
    trial: str | None
    standing: Standing
    why: str


class Sweep(Record):
    """What a sweep did. With `dry_run`, `removed` is what it would have removed. `failed` are still there."""

    dry_run: bool
    removed: tuple[SweptItem, ...] = ()
    left: tuple[SweptItem, ...] = ()
    failed: tuple[SweptItem, ...] = ()


def judge(leftover: Leftover, facts: MachineFacts, *, leased: bool) -> Judgement:
    """Whether the owner of a leftover is dead, alive, or elsewhere. Pure.

    `leased`: a live process holds the run's lock in the store that is looked from.
    """
    owner, me = leftover.owner, facts.me
    if leased:
        return Judgement(Standing.ALIVE, "its run is under way in this store")
    if owner is None:
        return Judgement(Standing.ELSEWHERE, "its label does not say which process it belongs to")
    if (owner.host, owner.machine) != (me.host, me.machine) or not (owner.boot and me.boot):
        return Judgement(Standing.ELSEWHERE, f"it belongs to process {owner.pid} on {owner.host}")
    if owner.boot != me.boot:
        return Judgement(Standing.DEAD, f"process {owner.pid} was there before {owner.host} started anew")
    if owner.namespace != me.namespace:
        return Judgement(Standing.ELSEWHERE, f"it belongs to process {owner.pid} of another process namespace")
    if owner.pid not in facts.processes:
        return Judgement(Standing.DEAD, f"process {owner.pid} has ended")
    entry = facts.processes[owner.pid]
    if entry is None:
        return Judgement(Standing.ALIVE, f"there is a process {owner.pid}, which this user may not look at")
    if entry.key.started != owner.started:
        return Judgement(Standing.DEAD, f"process {owner.pid} has ended, its number is another's now")
    if not entry.alive:
        return Judgement(Standing.DEAD, f"process {owner.pid} has ended and waits to be collected")
    return Judgement(Standing.ALIVE, f"process {owner.pid} is running")


def removable(judged: Judgement, *, named: bool) -> bool:
    """The dead's may go; what is elsewhere only when its run was named; the living's never. Pure."""
    return judged.standing is Standing.DEAD or (named and judged.standing is Standing.ELSEWHERE)


async def sweep(
    provider: SandboxProvider, *, leased: Leased, run: str | None = None, named: bool = False, dry_run: bool = False
) -> Sweep:
    """Remove what dead runs (or one `run`) left behind. `named`: the run's leftovers of other machines as well.

    Raises SandboxFault when the engine cannot be reached; what it would not remove is in `failed`.
    """
    found = _of_run(await provider.leftovers(), run)
    # Looked at after the listing: an owner that is not there now was not there to create anything since.
    facts = look_around(item.owner.pid for item in found if item.owner is not None)
    judged = [(item, judge(item, facts, leased=leased(item.run))) for item in found]
    going = [(item, why) for item, why in judged if removable(why, named=named)]
    kept = tuple(_swept(item, why) for item, why in judged if not removable(why, named=named))
    if dry_run or not going:
        return Sweep(dry_run=dry_run, removed=tuple(_swept(item, why) for item, why in going), left=kept)
    problems: dict[str, str] = {}
    for item, _ in going:
        try:
            await provider.remove(item)
        except SandboxFault as fault:  # one that will not go keeps no other; an engine that is away fails the listing
            problems[item.id] = fault.message
    remaining = {item.id for item in await provider.leftovers()}
    return Sweep(
        dry_run=False,
        removed=tuple(_swept(item, why) for item, why in going if item.id not in remaining),
        left=kept,
        failed=tuple(_swept(item, why, problems.get(item.id)) for item, why in going if item.id in remaining),
    )


@asynccontextmanager
async def taken_up(provider: SandboxProvider, run: str) -> AsyncIterator[None]:
    """Remove what a dead process left of a run that we own now, before and once more after: an engine carries out a
    request whose sender has died meanwhile. Raises SandboxFault before; after, a fault is logged."""
    await sweep(provider, leased=lambda run: False, run=run)
    yield
    try:
        await sweep(provider, leased=lambda run: False, run=run)
    except SandboxFault as fault:
        log.warning("leftovers.not_swept", run=run, error=str(fault), remedy="assay gc")


def collect_garbage(store: str | Path, *, run: str | None = None, dry_run: bool = False) -> Sweep:
    """As `assay gc` does: sweep the engine. `run`, an exact id, sweeps that run only, wherever its owner was.

    The store need not exist; its leases are looked at, never its database. Raises SandboxFault.
    """
    folder = Path(store) / "leases"
    leased: Leased = Leases(folder).owned if folder.is_dir() else lambda run: False

    async def main() -> Sweep:
        provider = open_provider()
        try:
            return await sweep(provider, leased=leased, run=run, named=run is not None, dry_run=dry_run)
        finally:
            await provider.close()

    return anyio.run(main)


def _of_run(leftovers: Iterable[Leftover], run: str | None) -> list[Leftover]:
    return [item for item in leftovers if run is None or item.run == run]


def _swept(item: Leftover, judged: Judgement, problem: str | None = None) -> SweptItem:
    return SweptItem(
        id=item.id,
        kind=item.kind,
        name=item.name,
        run=item.run,
        trial=item.trial,
        standing=judged.standing,
        why=judged.why if problem is None else f"{judged.why}, but {problem}",
    )
