"""Whether a record keeps the order that its format promises: what is missing from it, and before which step. Pure.

A call is answered before anybody goes on. Where agent and user take turns (half-duplex conversations), what one says is
followed by the other, and who called a tool is the next to act. A record that breaks such a rule was cut or edited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from harness.records.archive import Step
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Actor, Phase, StopReason

TURNS = frozenset({"assay", "tau-bench", "tau2"})  # formats of conversations in turns
FULL_DUPLEX = "full_duplex"
_SIDES = {Actor.AGENT: "agent", Actor.HARNESS: "agent", Actor.USER: "user"}  # a scripted greeting is the agent's
_USER_STOPPED = frozenset({"user_stop"})  # tau2's words
_SPOKEN = "API output:"
_AGENT_STOPPED = frozenset({"agent_stop"})


class Break(NamedTuple):
    """`at` is the first step that cannot stand where it stands; :func:`end_of` the record: its end is missing."""

    at: int
    what: str


class Pairs(NamedTuple):
    """Index of each call's answer, by the index of the call; and the first break, if there is one."""

    answers: dict[int, int]
    broken: Break | None


def of_interaction(step: Step) -> bool:
    """Whether a step is one of the episode itself, not of its set-up or grading."""
    return step.phase in (Phase.INTERACTION, None)


def end_of(steps: Sequence[Step]) -> int:
    """The index after the last step of the interaction."""
    return next((index + 1 for index in range(len(steps) - 1, -1, -1) if of_interaction(steps[index])), 0)


def paired(episode: RecordedEpisode) -> Pairs:
    """Calls with their answers, by id where they have one, else in order.

    Of a record without any answer, whose calls have no ids, answers are not to be expected.
    """
    steps = episode.steps
    silent = not any(step.kind == "tool.result" or _id(step) for step in steps if of_interaction(step))
    waiting: deque[int] = deque()
    answers: dict[int, int] = {}
    for index, step in enumerate(steps):
        if not of_interaction(step):
            continue
        if step.kind == "tool.result":
            broken = _answer(steps, index, waiting, answers)
            if broken is not None:
                return Pairs(answers, broken)
        elif waiting and step.kind in ("message", "model.call"):
            return Pairs(answers, _unanswered(steps, waiting[0]))
        elif step.kind == "tool.call" and step.actor in _SIDES and not silent:
            if waiting and steps[waiting[0]].actor is not step.actor:
                return Pairs(answers, _unanswered(steps, waiting[0]))
            waiting.append(index)
    return Pairs(answers, _unanswered(steps, waiting[0]) if waiting else None)


def first_break(episode: RecordedEpisode) -> Break | None:
    """The first place at which the record breaks its format's rules, in any way that can be seen."""
    found = [paired(episode).broken, _turns(episode), _spoken(episode), _end(episode)]
    return min((broken for broken in found if broken is not None), default=None)


def _id(step: Step) -> str:
    return str(step.payload.get("gen_ai.tool.call.id") or "") if step.kind == "tool.call" else ""


def _answer(steps: Sequence[Step], index: int, waiting: deque[int], answers: dict[int, int]) -> Break | None:
    if not waiting:
        return Break(index, "an answer to a call that is not there")
    call, id_ = waiting[0], str(steps[index].payload.get("gen_ai.tool.call.id") or "")
    wanted = _id(steps[call])
    if id_ and wanted and id_ != wanted:
        return Break(index, f"an answer to call {id_}, while call {wanted} waits for one")
    answers[call] = index
    waiting.popleft()
    return None


def _unanswered(steps: Sequence[Step], call: int) -> Break:
    return Break(call, f"no answer to the call of {steps[call].payload.get('gen_ai.tool.name')}")


def _turns(episode: RecordedEpisode) -> Break | None:
    """Who acts out of turn. `said`: the side whose message waits for the other's answer; `next_`: the side whose call
    was answered, and who has to go on."""
    if episode.format not in TURNS or episode.mode == FULL_DUPLEX:
        return None
    metered = any(step.kind == "model.call" for step in episode.steps)  # then a turn of the agent's begins with one
    said: str | None = None
    next_: str | None = None
    caller: str | None = None
    for index, step in enumerate(episode.steps):
        side = _SIDES.get(step.actor)
        if not of_interaction(step) or step.kind == "span":
            continue
        if step.kind == "tool.result":
            next_, said = caller, None
            continue
        if side is None:
            continue
        if next_ is not None and side != next_:
            return Break(index, f"the {side} acts, though the {next_} had an answer to go on from")
        begins = step.kind == "message" or (step.kind == "model.call") or not (metered and side == "agent")
        if said == side and begins and not (step.kind == "tool.call" and side == "user"):
            return Break(index, f"the {side} goes on without an answer to what it said")
        if step.kind == "message":
            said = side
        elif step.kind == "tool.call":
            said, caller = None, side
        next_ = None if step.kind != "model.call" else next_
    return None


def _spoken(episode: RecordedEpisode) -> Break | None:
    """Scaffolds of tau-bench that call tools in prose get the answers as the user's words: there are no calls then."""
    if episode.format != "tau-bench":
        return None
    for index, step in enumerate(episode.steps):
        if step.kind == "message" and step.actor is Actor.USER and str(step.payload.get("content")).startswith(_SPOKEN):
            return Break(index, "a tool answered here, and its call was recorded in prose alone")
    return None


def _end(episode: RecordedEpisode) -> Break | None:
    """Whether the end that the record states is in it."""
    end = end_of(episode.steps)
    missing = Break(end, f"it ended by {episode.end}, and nothing in it says so")
    last = episode.steps[end - 1] if end else None
    if last is None:
        return missing if episode.end in _USER_STOPPED | _AGENT_STOPPED else None
    said_by = _SIDES.get(last.actor) if last.kind == "message" else None
    if (episode.end in _USER_STOPPED and said_by != "user") or (episode.end in _AGENT_STOPPED and said_by != "agent"):
        return missing
    graded = isinstance(episode.stated.get("reward_info"), dict)
    if episode.format == "tau-bench" and graded and not episode.end:
        return Break(end, "it was graded, and nothing in it ends it")
    if episode.format == "assay" and not episode.end:
        return Break(end, "its interaction has no end")
    if episode.format == "assay" and episode.end == StopReason.USER_ENDED.value and last.kind == "model.call":
        return missing
    return None
