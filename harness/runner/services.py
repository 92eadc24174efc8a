"""What a trial needs from outside, as one argument: its services share no state with its siblings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from harness.protocols import ChatModel, EvidenceStore, Grader, SandboxProvider, Solver
from harness.records.event import Event
from harness.records.trial import SolverSpec
from harness.records.usage import Account
from harness.runner.handles import Price
from harness.runner.redaction import Redactor

Turn = Callable[[Callable[[], bool]], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def at_once(given_up: Callable[[], bool]) -> AsyncIterator[None]:
    """The turn of a trial that shares its machine with nobody: now."""
    yield


@dataclass(frozen=True)
class Services:
    """`solver` builds one per trial, `grader` finds one by `id@version`, `account` folds events to a bill."""

    provider: SandboxProvider
    store: EvidenceStore
    solver: Callable[[SolverSpec], Solver]
    grader: Callable[[str], Grader]
    account: Callable[[Iterable[Event]], Account]
    price: Price
    model: ChatModel | None = None
    redactor: Redactor = field(default_factory=Redactor)
    host_env: Mapping[str, str] = field(default_factory=dict)  # for `${NAME}` in tasks; its values are secrets
    turn: Turn = at_once  # awaited before a trial begins; it stops waiting when what it is given says so
