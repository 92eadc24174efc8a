"""A trial that is a conversation: who did what, the checkpoints, what ends it, and what grading may not touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from harness.protocols import Episode, EpisodeCase
from harness.records.base import digest_of
from harness.records.chat import ToolCall
from harness.records.conversation import Action
from harness.records.errors import ConfigError, Revoked
from harness.records.event import EventDraft
from harness.records.grade import Grade
from harness.records.task import Budget, ImagePin
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Actor, Outcome, Phase, Reason, StopReason
from harness.runner.episodes import episode_of
from harness.runner.sealing import interaction_digest
from harness.runner.services import Services
from harness.store.memory import MemoryStore
from harness.store.verify import verify_run
from solvers.agent import Agent
from solvers.mutated import Mutated
from solvers.noop import Noop
from solvers.reference import Reference
from tests.runner.conversations import Counter, by, conversation, gold, make_talk, of, steps, talking
from tests.runner.scenes import DIGEST, FakeModel, carry_out, make_plan, reply

pytestmark = pytest.mark.anyio

TRIAL = "r1.0000.1"


@pytest.fixture
def anyio_backend() -> str:
    """Real time: environments are called in worker threads, which a virtual clock would not wait for."""
    return "asyncio"


def events_of(services: Services, stream: str = TRIAL) -> list[Any]:
    return list(services.store.events(stream))


async def test_gold_passes_and_every_step_names_its_actor_and_checkpoint() -> None:
    world = Counter()
    services = talking(gold, world)
    result = await carry_out(services, make_talk())
    assert (result.outcome, result.stop, result.reward) == (Outcome.PASSED, StopReason.USER_ENDED, 1.0)
    events = events_of(services)
    assert [e.payload["content"] for e in by(Actor.USER, events, "message")] == [
        "Please add 2 and tell me what comes of it.",
        "Thanks, bye.",
    ]
    (call,) = by(Actor.AGENT, events, "tool.call")
    (answer,) = by(Actor.ENVIRONMENT, events, "tool.result")
    assert (call.payload["gen_ai.tool.name"], call.payload["arguments"]) == ("add", {"by": 2})
    assert answer.span == call.span
    assert answer.state_digest == digest_of(2)
    assert {e.phase for e in events if e.kind in ("message", "tool.call", "tool.result")} == {Phase.INTERACTION}


async def test_the_reference_acts_in_an_instance_and_a_stream_of_its_own() -> None:
    world = Counter()
    services = talking(gold, world)
    await carry_out(services, make_talk())
    assert len(world.sessions) == 2
    assert {event.phase for event in events_of(services, f"{TRIAL}.reference")} == {Phase.GRADING}
    assert by(Actor.REFERENCE, events_of(services, f"{TRIAL}.reference"), "tool.call")
    assert not by(Actor.REFERENCE, events_of(services), "tool.call")
    store = services.store
    assert isinstance(store, MemoryStore)
    report = verify_run(store, "r1")
    assert report.ok
    assert not [notice for notice in report.notices if "no planned trial" in notice]


async def test_the_interaction_is_the_same_before_and_after_grading() -> None:
    services = talking(gold, Counter())
    await carry_out(services, make_talk())
    (seal,) = [event for event in events_of(services) if event.kind == "seal"]
    assert seal.payload["interaction"] == interaction_digest(events_of(services))
    assert seal.payload["interaction"] == interaction_digest(events_of(services)[: seal.seq])
    assert seal.state_digest == digest_of(2)
    assert services.store.blob(seal.blobs["state"]) == b"2"


@dataclass
class Meddling:
    """A grader that acts in the live episode instead of an instance of its own."""

    world: Counter
    services: list[Services]
    touches: str
    id: str = "meddling"
    version: str = "1"
    rule: str = ""
    code: str = ""

    def grade(self, case: EpisodeCase) -> Grade:
        if self.touches == "state":
            self.world.sessions[0].value += 1
        else:
            store = self.services[0].store
            (called,) = by(Actor.AGENT, list(store.events(TRIAL)), "tool.call")
            draft = {name: getattr(called, name) for name in EventDraft.model_fields}
            store.append([EventDraft(**draft)])
        return Grade(grader="meddling@1", outcome=Outcome.PASSED, reward=1.0)


@pytest.mark.parametrize("touches", ["state", "stream"])
async def test_a_grader_that_touches_the_live_episode_gives_no_grade(touches: str) -> None:
    world = Counter()
    held: list[Services] = []
    services = talking(gold, world, Meddling(world, held, touches))
    held.append(services)
    result = await carry_out(services, make_talk())
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.HARNESS_ERROR)
    assert "live state" in result.detail if touches == "state" else "sealed stream changed" in result.detail


async def test_the_shipped_solvers_go_through_the_same_interface() -> None:
    task = make_talk(solution=steps({"call": "add", "arguments": {"by": 2}}, {"say": "It comes to 2."}))
    spec = SolverSpec(name="reference", actor="reference", uses_solution=True)
    services = talking(Reference().run, Counter())
    assert (await carry_out(services, task, solver=spec)).outcome is Outcome.PASSED
    assert by(Actor.REFERENCE, events_of(services), "tool.call")
    assert (await carry_out(talking(Noop().run, Counter()), task)).outcome is Outcome.FAILED
    wrong = {"name": "leaves out add", "file": "steps.jsonl", "find": '{"call": "add"', "replace": '{"call": "show"'}
    mutant = make_talk(solution=task.solution, mutations=(wrong,))
    assert (await carry_out(talking(Mutated().run, Counter()), mutant, solver=spec)).outcome is Outcome.FAILED


async def test_the_user_has_tools_too() -> None:
    async def ask(episode: Episode) -> None:
        assert "pressed it" in (await of(episode).say("Please press the button.")).text
        await of(episode).say("It comes to 2.")

    asked = conversation(actions=(Action(name="press", actor="user", namespace="user", arguments={"by": 1}),))
    services = talking(ask, Counter())
    result = await carry_out(services, make_talk(asked))
    assert result.outcome is Outcome.PASSED, result.detail
    (call,) = by(Actor.USER, events_of(services), "tool.call")
    assert call.payload["namespace"] == "user"


async def test_a_tool_of_the_other_side_is_missing_but_in_solo_mode() -> None:
    async def reach_over(episode: Episode) -> None:
        assert (await of(episode).call("press", {"by": 2}, namespace="user")).missing is not (
            of(episode).opening is None
        )

    assert (await carry_out(talking(reach_over, Counter()), make_talk())).outcome is Outcome.FAILED
    alone = conversation(mode="solo", user=None, outputs=())
    result = await carry_out(talking(reach_over, Counter()), make_talk(alone))
    assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.FINISHED)


async def test_a_handoff_and_a_normal_end_with_the_same_state_have_the_same_grade() -> None:
    async def hand_over(episode: Episode) -> None:
        await of(episode).call("add", {"by": 2})
        await of(episode).call("hand_over", {})
        raise AssertionError("the gate is closed")

    asked = conversation(outputs=())
    handed = await carry_out(talking(hand_over, Counter()), make_talk(asked))
    normal = await carry_out(talking(gold, Counter()), make_talk(asked))
    assert handed.outcome is normal.outcome is Outcome.PASSED
    assert handed.stop is normal.stop is StopReason.USER_ENDED


async def test_nothing_happens_behind_a_closed_gate() -> None:
    seen: list[type[BaseException]] = []

    async def go_on(episode: Episode) -> None:
        for _ in range(2):
            try:
                await of(episode).say("It comes to 2.")
                await of(episode).call("add", {"by": 5})
            except Revoked as refused:
                seen.append(type(refused))
                raise

    world = Counter()
    result = await carry_out(talking(go_on, world), make_talk())
    assert result.stop is StopReason.USER_ENDED
    assert world.sessions[0].value == 0


async def test_steps_are_calls_and_words_and_the_budget_is_kept() -> None:
    async def babble(episode: Episode) -> None:
        await of(episode).call("show", {})
        while True:
            await of(episode).say("Hm.")

    services = talking(babble, Counter())
    result = await carry_out(services, make_talk(budget=Budget(wall_s=60.0, steps=2)))
    assert result.stop is StopReason.STEPS
    assert len(by(Actor.AGENT, events_of(services), "message")) == 1


async def test_an_impatient_user_leaves_and_that_is_a_fail() -> None:
    async def babble(episode: Episode) -> None:
        while True:
            await of(episode).say("Hm.")

    result = await carry_out(talking(babble, Counter()), make_talk())
    assert (result.stop, result.outcome) == (StopReason.USER_ENDED, Outcome.FAILED)


async def test_an_environment_that_fails_is_no_fail_of_the_agent() -> None:
    result = await carry_out(talking(gold, Counter(broken=True)), make_talk())
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.ENGINE_ERROR)
    assert "fell off the table" in result.detail
    unknown = await carry_out(talking(gold, Counter()), make_talk(conversation(mode="duplex")))
    assert (unknown.outcome, unknown.reason) == (Outcome.UNGRADED, Reason.SETUP_FAILED)


async def test_a_task_may_begin_in_a_state_of_its_own() -> None:
    world = Counter()
    asked = conversation(initial={"value": 40}, outputs=())
    assert (await carry_out(talking(gold, world), make_talk(asked))).outcome is Outcome.PASSED
    assert world.sessions[0].value == 42


async def test_an_environment_that_is_not_the_pinned_one_is_refused() -> None:
    task = make_talk(image=ImagePin(reference="environment:counter@1", digest=DIGEST))
    result = await carry_out(talking(gold, Counter()), task)
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.IMAGE_MISMATCH)


async def test_a_reference_action_that_fails_is_the_tasks_fault() -> None:
    asked = conversation(actions=(Action(name="add", arguments={"by": "two"}),))
    result = await carry_out(talking(gold, Counter()), make_talk(asked))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.GRADER_CRASHED)
    assert "reference action 0 (add) failed" in result.detail


async def test_a_solver_that_wants_a_sandbox_is_told() -> None:
    async def shell(episode: Episode) -> None:
        with pytest.raises(ConfigError, match="it has no sandbox"):
            await episode.sandbox.exec("ls")
        await gold(episode)

    assert (await carry_out(talking(shell, Counter()), make_talk())).outcome is Outcome.PASSED


async def test_what_is_not_deterministic_is_marked_and_a_record_reads_back_as_an_episode() -> None:
    async def roll(episode: Episode) -> None:
        await of(episode).call("dice", {"much": "x" * 5000})
        await gold(episode)

    services = talking(roll, Counter())
    task = make_talk()
    await carry_out(services, task)
    marked = [e.payload.get("deterministic", True) for e in by(Actor.AGENT, events_of(services), "tool.call")]
    assert marked == [False, True]
    episode = episode_of(make_plan(task), events_of(services), services.store.blob)
    assert (episode.outcome, episode.end, episode.mode) == (Outcome.PASSED, "user_ended", "normal")
    calls = [step for step in episode.steps if step.kind == "tool.call"]
    assert calls[0].payload["arguments"] == {"much": "x" * 5000}
    assert [step.payload.get("state_digest") for step in episode.steps if step.kind == "tool.result"][-1] == digest_of(
        2
    )


@pytest.mark.parametrize("damage", ["cut", "gone"])
async def test_a_reference_stream_that_was_cut_is_seen(damage: str) -> None:
    services = talking(gold, Counter())
    await carry_out(services, make_talk())
    store = services.store
    assert isinstance(store, MemoryStore)
    stream = store._streams[f"{TRIAL}.reference"]
    if damage == "cut":
        stream.pop()
    else:
        del store._streams[f"{TRIAL}.reference"]
    (problem,) = verify_run(store, "r1").problems
    assert ("tail was lost" if damage == "cut" else "is gone") in problem.what


async def test_a_model_leads_a_conversation_under_its_budget() -> None:
    call = ToolCall(id="c1", name="add", arguments='{"by": 2}')
    first = reply().model_copy(
        update={"content": None, "tool_calls": (call,), "message": {"role": "assistant", "tool_calls": []}}
    )
    last = reply().model_copy(update={"content": "It comes to 2."})
    model = FakeModel([first, last])
    services = talking(Agent().run, Counter(), model=model)
    result = await carry_out(services, make_talk(), model="fake-1")
    assert (result.outcome, result.calls, result.steps) == (Outcome.PASSED, 2, 2), result.detail
    (called,) = by(Actor.AGENT, events_of(services), "tool.call")
    assert called.payload["gen_ai.tool.call.id"] == "c1"
    assert model.asked[0].tools[0]["function"]["name"] == "add"
    assert model.asked[1].messages[-1] == {"role": "tool", "tool_call_id": "c1", "content": '{"value": 2}'}
