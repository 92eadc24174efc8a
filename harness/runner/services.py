"""What a trial needs from outside, as one argument: its services share no state with its siblings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from harness.billing.account import PriceOf
from harness.protocols import (
    ChatModel,
    Environment,
    EpisodeGrader,
    EvidenceStore,
    Grader,
    SandboxProvider,
    SimulatedUser,
    Solver,
)
from harness.records.conversation import Conversation, UserScript
from harness.records.environment import EnvironmentFault
from harness.records.event import Event
from harness.records.trial import SolverSpec
from harness.records.usage import Account
from harness.runner.keeping import KEEP_BYTES
from harness.runner.redaction import Redactor

Turn = Callable[[Callable[[], bool]], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def at_once(given_up: Callable[[], bool]) -> AsyncIterator[None]:
    """The turn of a trial that shares its machine with nobody: now."""
    yield


def no_environment(conversation: Conversation) -> Environment:
    """Of a run that has no conversations. Raises EnvironmentFault."""
    raise EnvironmentFault(f"this run has no environments, and a task asks for {conversation.environment}")


def no_grader(reference: str) -> EpisodeGrader:
    """Of a run that has no conversations. Raises EnvironmentFault."""
    raise EnvironmentFault(f"this run has no graders of episodes, and a task asks for {reference}")


def no_user(script: UserScript, seed: int) -> SimulatedUser:
    """Of a run that has no conversations. Raises EnvironmentFault."""
    raise EnvironmentFault("this run has no simulated users, and a task asks for one")


@dataclass(frozen=True)
class Services:
    """`solver` builds one per trial, `grader` finds one by `id@version`, `account` folds events to a bill."""

    provider: SandboxProvider
    store: EvidenceStore
    solver: Callable[[SolverSpec], Solver]
    grader: Callable[[str], Grader]
    account: Callable[[Iterable[Event]], Account]
    price: PriceOf
    model: ChatModel | None = None
    redactor: Redactor = field(default_factory=Redactor)
    host_env: Mapping[str, str] = field(default_factory=dict)  # for `${NAME}` in tasks; its values are secrets
    environment: Callable[[Conversation], Environment] = no_environment  # for tasks that are conversations
    episode_grader: Callable[[str], EpisodeGrader] = no_grader
    user: Callable[[UserScript, int], SimulatedUser] = no_user  # by script and seed
    keep_bytes: int = KEEP_BYTES  # of each sealed container, to grade it again; 0: none
    turn: Turn = at_once  # awaited before a trial begins; it stops waiting when what it is given says so
