"""What Assay recorded itself replays to `same` at every step, and the same grader then says the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.api.environments import environment_of
from harness.grading.conversation import ConversationGrader
from harness.protocols import Episode, EpisodeCase
from harness.records.environment import Opening
from harness.records.replay import Invalid, Match, RecordedEpisode, Replayed
from harness.records.suite import Suite
from harness.records.vocabulary import Outcome
from harness.replay.engine import replay_episode
from harness.runner.episodes import episode_of
from harness.runner.services import Services
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore
from solvers.reference import Reference
from tests.runner.conversations import Counter, gold, make_talk, of, talking
from tests.runner.scenes import carry_out, make_plan, make_row
from tests.suites.test_airline import REFERENCE, services_for, suite

__all__ = ["suite"]
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def recorded(services: Services, task: Any) -> RecordedEpisode:
    plan = make_plan(task, solver=REFERENCE)
    store = services.store
    assert isinstance(store, MemoryStore)
    store.create_run(make_row([task]))
    store.plan([plan])
    await Trial(plan, services).run()
    return episode_of(plan, store.events(plan.trial), store.blob)


def graded_again(replayed: Replayed, opening: Opening, environment: Any) -> Outcome:
    case = EpisodeCase(replayed, replayed.episode.definition, environment, opening)
    return ConversationGrader().grade(case).outcome


async def test_every_bundled_conversation_replays_to_the_same_at_every_step(suite: Suite) -> None:
    steps = checkpoints = 0
    for task in suite.tasks:
        talk = task.conversation
        assert talk is not None
        episode = await recorded(services_for(suite, Reference()), task)
        environment = environment_of(talk)
        opening = Opening(talk.mode, talk.data, talk.initial)
        replayed = replay_episode(episode, environment, opening)
        assert replayed.valid, (task.id, replayed.fidelity)
        assert {step.match for step in replayed.steps} <= {Match.SAME}, task.id
        found = replayed.fidelity
        assert found.same == found.steps
        assert found.checkpoints == found.checkpoints_same >= 2
        assert replayed.end_state == episode.states.end
        assert graded_again(replayed, opening, environment) is episode.outcome is Outcome.PASSED
        steps += found.steps
        checkpoints += found.checkpoints
    assert steps > 100
    assert checkpoints > 150


async def test_a_tool_that_never_answers_twice_alike_is_told_and_not_held_against_the_record() -> None:
    async def roll(episode: Episode) -> None:
        await of(episode).call("dice", {})
        await gold(episode)

    services, task = talking(roll, Counter()), make_talk()
    await carry_out(services, task)
    episode = episode_of(make_plan(task), services.store.events("r1.0000.1"), services.store.blob)
    replayed = replay_episode(episode, Counter(), Opening("normal"))
    assert replayed.valid
    assert [step.match for step in replayed.steps] == [Match.UNCHECKED, Match.SAME]
    assert "not to be deterministic" in replayed.steps[0].rule


def dropped(episode: RecordedEpisode, at: int) -> tuple[Any, ...]:
    return episode.steps[:at] + episode.steps[at + 2 :]


def edited(episode: RecordedEpisode, at: int) -> tuple[Any, ...]:
    step = episode.steps[at]
    step.payload["arguments"] = {"by": 3}
    return episode.steps


@pytest.mark.parametrize("fault", [dropped, edited])
async def test_a_record_that_was_changed_is_seen(fault: Callable[[RecordedEpisode, int], tuple[Any, ...]]) -> None:
    services, task = talking(gold, Counter()), make_talk()
    await carry_out(services, task)
    episode = episode_of(make_plan(task), services.store.events("r1.0000.1"), services.store.blob)
    at = next(index for index, step in enumerate(episode.steps) if step.kind == "tool.call")
    changed = RecordedEpisode(
        **{
            name: getattr(episode, name)
            for name in ("id", "task", "repeat", "mode", "definition", "outcome", "reward", "end", "format", "states")
        },
        steps=fault(episode, at),
    )
    replayed = replay_episode(changed, Counter(), Opening("normal"))
    assert replayed.fidelity.invalid is Invalid.DIVERGED
