"""An environment with tools, and a user: what a conversation happens in.

Three instances of the environment never share state: the live one here, the reference run's that the grader opens, and
whatever replays the record later. The reference run has a stream of its own, `<trial>.reference`, phase grading; the
live stream and the live state must be the same after it as before, or there is no grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass

import anyio.to_thread

from harness.protocols import Environment, EnvironmentSession, EpisodeCase
from harness.records.conversation import Conversation
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening
from harness.records.errors import SandboxFault
from harness.records.event import Event
from harness.records.grade import Grade
from harness.records.replay import Fidelity, Match, RecordedEpisode, Replayed, ReplayedStep
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Phase, Reason
from harness.runner.conversing import (
    NoSandbox,
    RecordedConversation,
    RecordedSession,
    as_sandbox_fault,
    close_with,
    environment_digest,
    note_message,
    pin_of,
)
from harness.runner.episodes import OPENED, episode_of
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal
from harness.runner.judging import judge
from harness.runner.sealing import SEAL, Sealed, interaction_digest
from harness.runner.services import Services
from harness.runner.stage import Handles

REFERENCE_STREAM = "reference"


class ConversationStage:
    """A :class:`harness.runner.stage.Stage` without a container."""

    def __init__(self, plan: TrialPlan, services: Services, journal: Journal, stack: AsyncExitStack) -> None:
        assert plan.task.conversation is not None
        self.plan, self.services, self.journal, self._stack = plan, services, journal, stack
        self.conversation: Conversation = plan.task.conversation

    @property
    def opening(self) -> Opening:
        asked = self.conversation
        return Opening(mode=asked.mode, data=asked.data, initial=asked.initial)

    async def open(self) -> None:
        """Raises SandboxFault, also where the environment is not the one that the task is pinned to."""
        try:
            self.environment: Environment = self.services.environment(self.conversation)
            close_with(self._stack, self.environment)
            capabilities = self.environment.capabilities
            session = await anyio.to_thread.run_sync(
                lambda: self._stack.enter_context(self.environment.open(self.opening))
            )
            found = await anyio.to_thread.run_sync(self._found_digest, session)
        except EnvironmentFault as fault:
            raise SandboxFault(str(fault), reason=Reason.SETUP_FAILED.value, place=self.plan.task.source) from fault
        pinned = self.plan.task.image.digest
        if found != pinned:
            raise SandboxFault(
                f"{self.conversation.environment} is {found}, and the task is pinned to {pinned}",
                reason=Reason.IMAGE_MISMATCH.value,
                place=self.plan.task.source,
            )
        self.session = RecordedSession(session, capabilities, self.journal)
        facts = {
            "environment": capabilities.environment,
            "code": capabilities.code,
            "pin": found,
            "mode": self.conversation.mode,
            "data": self.conversation.data,
            "digest": capabilities.digest,
        }
        self.journal.note(OPENED, facts, actor=Actor.ENVIRONMENT, state_digest=await self.session.digest())

    def _found_digest(self, session: EnvironmentSession) -> str:
        """What the environment is pinned by. Another instance is opened only where the task begins in a state of its
        own."""
        asked, capabilities = self.conversation, self.environment.capabilities
        if asked.initial:
            return environment_digest(self.environment, asked.mode, asked.data)
        return pin_of(capabilities, asked.data, session.digest() if capabilities.digest else "")

    def handles(self, interaction: Interaction) -> Handles:
        script = self.conversation.user
        user = self.services.user(script, self.plan.seed) if script is not None else None
        opening = user.open() if user is not None else None
        if opening is not None:
            note_message(self.journal, Actor.USER, opening)
        actor = Actor(self.plan.solver.actor)
        mode = self.conversation.mode
        return Handles(
            NoSandbox(), RecordedConversation(self.session, interaction, self.journal, mode, actor, user, opening)
        )

    async def seal(self) -> Sealed:
        digest = interaction_digest(self.services.store.events(self.plan.trial))
        state = await self.session.digest()
        blobs: dict[str, str] = {}
        if self.session.capabilities.snapshots:
            snapshot = await self.session.snapshot()
            if self.journal.is_clean(snapshot):
                blobs["state"] = self.journal.keep(snapshot)
        self.journal.note(SEAL, {"interaction": digest, "flags": []}, blobs=blobs, state_digest=state)
        return Sealed({}, {}, interaction=digest, state=state)

    async def grade(self, sealed: Sealed) -> Grade:
        """Raises SandboxFault, also when grading has touched what was sealed."""
        reference = self._reference_journal()
        case = EpisodeCase(
            replayed=self._live(sealed),
            task=self.conversation,
            environment=_Watched(self.environment, reference),
            opening=self.opening,
        )
        grader = self.services.episode_grader(self.plan.task.grading.grader)

        async def ask() -> Grade:
            try:
                return await anyio.to_thread.run_sync(grader.grade, case)
            except EnvironmentFault as fault:
                raise as_sandbox_fault(fault) from fault

        grade = await judge(ask, self.plan.task, self.journal)
        head = last_hash(self.services.store.events(reference.stream))
        if head:
            self.journal.note("reference.closed", {"stream": reference.stream, "head": head}, actor=Actor.GRADER)
        state = await self.session.digest()
        if state != sealed.state:
            raise SandboxFault(
                f"grading changed the live state: {sealed.state} became {state}", reason=Reason.HARNESS_ERROR.value
            )
        return grade

    def _live(self, sealed: Sealed) -> Replayed:
        """The live episode in the form that graders of replays read: its end state is what it really ended in."""
        store = self.services.store
        episode = episode_of(self.plan, store.events(self.plan.trial), store.blob)
        calls = sum(step.kind == "tool.call" for step in episode.steps)
        return Replayed(
            episode=episode,
            environment=self.conversation.environment,
            data=self.conversation.data,
            mode=self.conversation.mode,
            steps=live_steps(episode),
            fidelity=Fidelity(steps=calls, compared=calls, same=calls, cosmetic=0, key=0, missing=0),
            end_state=sealed.state,
        )

    def _reference_journal(self) -> Journal:
        trial = self.journal
        stream = f"{self.plan.trial}.{REFERENCE_STREAM}"
        made = Journal(self.services.store, stream, trial.attempt, trial.redactor, trial.wall, trial.monotonic)
        made.phase = Phase.GRADING
        return made


def live_steps(episode: RecordedEpisode) -> tuple[ReplayedStep, ...]:
    """The calls of an episode as they happened: each the same as itself."""
    found: list[ReplayedStep] = []
    waiting: tuple[int, str] | None = None
    for index, step in enumerate(episode.steps):
        if step.kind == "tool.call":
            waiting = index, str(step.payload.get("gen_ai.tool.name"))
        elif step.kind == "tool.result" and waiting is not None:
            content = str(step.payload.get("content"))
            found.append(
                ReplayedStep(waiting[0], waiting[1], content, content, Match.SAME, missing="missing" in step.payload)
            )
            waiting = None
    return tuple(found)


def last_hash(events: Iterable[Event]) -> str:
    """The hash that a stream ends with; empty for one that has no events."""
    head = ""
    for event in events:
        head = event.hash
    return head


@dataclass(frozen=True)
class _Watched:
    """An environment whose instances write down what is called in them: the grader's, in the reference's stream."""

    inner: Environment
    journal: Journal

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @contextmanager
    def open(self, opening: Opening) -> Iterator[EnvironmentSession]:
        with self.inner.open(opening) as session:
            state = session.digest() if self.capabilities.digest else None
            facts = {"environment": self.capabilities.environment, "mode": opening.mode, "data": opening.data}
            self.journal.note(OPENED, facts, actor=Actor.ENVIRONMENT, state_digest=state)
            yield _WatchedSession(RecordedSession(session, self.capabilities, self.journal))


@dataclass(frozen=True)
class _WatchedSession:
    recorded: RecordedSession

    def call(self, call: Call) -> Answer:
        return self.recorded.call_now(call)

    def digest(self) -> str:
        return self.recorded.inner.digest()

    def snapshot(self) -> bytes:
        return self.recorded.inner.snapshot()

    def restore(self, state: bytes) -> None:
        self.recorded.inner.restore(state)
