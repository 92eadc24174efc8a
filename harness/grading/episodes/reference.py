"""Runs in environment instances of a grader's own: the reference actions, or the recorded calls once more.

Never the live instance and never the replay's: what a grader does cannot touch what it judges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from harness.grading.episodes.conversation import copied
from harness.grading.episodes.criteria import ReferenceAction, initial_of
from harness.protocols import Environment, EnvironmentSession, EpisodeCase
from harness.records.calls import history_of
from harness.records.environment import Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor

NORMAL = "normal"
_MOST_KEPT = 512
Prepare = Callable[[Any], Any]  # what is done to arguments before a call gets them


@dataclass(frozen=True)
class Carried:
    """How a reference run went, in words. A benchmark goes on after an action that failed; one for which the
    environment has no tool says nothing of the episode."""

    failed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class EndState:
    """The digest of a reference run's end state."""

    digest: str
    carried: Carried


def reference_call(action: ReferenceAction, prepare: Prepare = copied) -> Call:
    """The call of a reference action."""
    return Call(Actor.REFERENCE, action.name, prepare(action.arguments), action.namespace)


def reference_opening(case: EpisodeCase) -> Opening:
    """How the reference instance is opened: in normal mode, whatever the episode's, where the environment has it."""
    normal = NORMAL if NORMAL in case.environment.capabilities.modes else case.opening.mode
    return replace(case.opening, mode=normal)


def recorded_opening(case: EpisodeCase) -> Opening:
    """How the episode's own instance was opened."""
    stated = initial_of(case.replayed.episode.definition)
    return Opening(case.replayed.mode, case.replayed.data or case.opening.data, stated or case.opening.initial)


def carry_out(session: EnvironmentSession, actions: Iterable[ReferenceAction], prepare: Prepare = copied) -> Carried:
    """Carry out reference actions, all of them. Raises EnvironmentFault."""
    failed, missing = [], []
    for number, action in enumerate(actions):
        answer = session.call(reference_call(action, prepare))
        if answer.missing:
            missing.append(f"the environment has no tool for reference action {number} ({action.name})")
        elif answer.error:
            failed.append(f"reference action {number} ({action.name}) failed: {answer.content[:200]}")
    return Carried(tuple(failed), tuple(missing))


class References:
    """Reference runs, each carried out once for all episodes of its task."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], tuple[Environment, EndState]] = {}

    def end(
        self, environment: Environment, opening: Opening, actions: Sequence[ReferenceAction], prepare: Prepare = copied
    ) -> EndState:
        """The end state of the actions in a new instance. Raises EnvironmentFault."""
        asked = [[action.name, action.arguments, action.namespace] for action in actions]
        settings = [opening.mode, opening.data, dict(opening.initial), prepare.__name__, asked]
        key = (id(environment), json.dumps(settings, sort_keys=True))
        known = self._kept.get(key)
        if known is not None:
            return known[1]
        with opened(environment, opening) as session:
            carried = carry_out(session, actions, prepare)
            found = EndState(session.digest(), carried)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = (environment, found)  # the environment is kept, so that its id stays its own
        return found


def recorded_end(case: EpisodeCase, calls: Iterable[Call], prepare: Prepare = copied) -> str:
    """The digest after the recorded calls were made again, in a new instance. Raises EnvironmentFault."""
    with recorded_session(case, calls, prepare) as session:
        return session.digest()


@contextmanager
def recorded_session(
    case: EpisodeCase, calls: Iterable[Call], prepare: Prepare = copied
) -> Iterator[EnvironmentSession]:
    """A new instance in which the recorded calls were made again. Raises EnvironmentFault."""
    with opened(case.environment, recorded_opening(case)) as session:
        for call in calls:
            session.call(replace(call, arguments=prepare(call.arguments)))
        yield session


@contextmanager
def opened(environment: Environment, opening: Opening) -> Iterator[EnvironmentSession]:
    """A new instance, with the calls of the message history that the task begins with. Raises EnvironmentFault."""
    with environment.open(opening) as session:
        for call in history_of(opening.initial):
            session.call(replace(call, arguments=copied(call.arguments)))
        yield session


def needs_digest(case: EpisodeCase) -> None:
    """Raises EnvironmentFault when the environment declares no state digest."""
    if not case.environment.capabilities.digest:
        name = case.environment.capabilities.environment
        raise EnvironmentFault("declares no state digest: end states cannot be compared", place=name)
