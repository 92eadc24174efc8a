"""tau2-bench's rules: the product of the criteria that the task's `reward_basis` names.

DB: the end state equals that of the reference actions. COMMUNICATE: each required text is a part of something the agent
said. ENV_ASSERTION: named checks hold on the end state. ACTION: each reference action was called. NL_ASSERTION needs a
model as judge, which is not here: a task that counts it has no grade. A criterion that the task leaves empty counts 1.
Source: the project's evaluators at 37199f3 (0.1.0) and 01e812d (1.0.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.grading.episodes.conversation import Act, acts_of, by_value, copied
from harness.grading.episodes.criteria import (
    DEFAULT_BASIS,
    Assertion,
    Criteria,
    CriteriaFault,
    ReferenceAction,
    criteria_of,
)
from harness.grading.episodes.phrases import Phrases
from harness.grading.episodes.reference import (
    Prepare,
    References,
    needs_digest,
    recorded_end,
    recorded_session,
    reference_opening,
)
from harness.grading.episodes.variants import choices_made, varied
from harness.grading.episodes.verdicts import invalid, outcome_of, source_digest, ungraded
from harness.protocols import EpisodeCase
from harness.records.environment import Call, Capabilities, EnvironmentFault
from harness.records.grade import Grade
from harness.records.vocabulary import Actor, Phase, Reason, StopReason

ID = "tau2"
USER_STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
AGENT_STOP = "###STOP###"
INFRASTRUCTURE = "infrastructure_error"
SCORED = ("user_stop", "agent_stop")
_SETTLED = frozenset({"DB", "COMMUNICATE", "ENV_ASSERTION", "ACTION"})


@dataclass(frozen=True)
class Tau2Rule:
    """The choices of a version. `zeros`: ends that are a 0 without a look at the state; None: all but `SCORED`.

    `numbers_by_value`: 250 and 250.0 are one number in the end state. `needs_end` False: an episode whose end is not
    known, or not scored, is graded as it stood.
    """

    zeros: tuple[str, ...] | None
    phrases: Phrases = field(default_factory=Phrases)
    numbers_by_value: bool = False
    needs_end: bool = True


@dataclass(frozen=True)
class _Part:
    """One criterion. `value` None: it cannot be settled here, `note` says why."""

    value: float | None
    note: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tau2:
    """An :class:`harness.protocols.EpisodeGrader`: one version of tau2-bench's rule."""

    version: str
    choices: Tau2Rule
    id: str = ID
    _references: References = field(default_factory=References, repr=False, compare=False)

    @property
    def code(self) -> str:
        return source_digest(["tau2"])

    @property
    def rule(self) -> str:
        zeros = self.choices.zeros
        ends = f"an end by {' or '.join(zeros)}" if zeros is not None else f"any end but {' and '.join(SCORED)}"
        counted = f"the product of the task's reward_basis (unstated: {', '.join(DEFAULT_BASIS)})"
        return f"{counted}; 0 for {ends}{choices_made(self.choices, _CHANGES)}"

    def variant(self, names: Sequence[str]) -> Tau2:
        """This version with named choices made otherwise. Raises ConfigError for an unknown name."""
        return Tau2("+".join((self.version, *names)), varied(self.choices, names, _CHANGES, self.id))

    def grade(self, case: EpisodeCase) -> Grade:
        """Raises nothing of the episode's or the task's: what cannot be graded is a grade with the reason."""
        name = f"{self.id}@{self.version}"
        if not case.replayed.valid:
            return invalid(name, case)
        acts = acts_of(case.replayed.episode.steps, case.environment.capabilities, case.replayed.mode)
        end, stated = self._end(case, acts)
        ended = self._unscored(name, end) if self.choices.needs_end else None
        if ended is not None:
            return ended
        try:
            criteria = criteria_of(case.task)
            parts = self._parts(case, criteria, acts)
        except CriteriaFault as fault:
            return ungraded(name, Reason.VERDICT_MISSING, f"no criteria: {fault}")
        except EnvironmentFault as fault:
            return ungraded(name, Reason.UNSUPPORTED, str(fault))
        flags = () if stated else (f"the end is not stated; read from the messages: {end or 'unknown'}",)
        return _product(name, criteria.basis or DEFAULT_BASIS, parts, flags)

    def _end(self, case: EpisodeCase, acts: Sequence[Act]) -> tuple[str, bool]:
        """Why the episode ended, in tau2's words ("" for unknown), and whether the source states it."""
        stated = case.replayed.episode.end
        stated = _OUR_WORDS.get(stated, stated)
        if stated in _ENDS:
            return stated, True
        last = acts[-1] if acts else None
        if last is None:
            return "", False
        if last.text is not None and last.actor is Actor.USER and any(stop in last.text for stop in USER_STOPS):
            return "user_stop", False
        if last.text is not None and last.actor is Actor.AGENT and AGENT_STOP in last.text:
            return "agent_stop", False
        tool = None if last.call is None else case.environment.capabilities.tool(last.call.name, last.call.namespace)
        ended = tool is not None and tool.ends and last.actor is Actor.AGENT
        return ("agent_stop" if ended else ""), False

    def _unscored(self, name: str, end: str) -> Grade | None:
        """The grade of an end for which the rule does not look at the state; None where it does."""
        if not end:
            what = "why the episode ended is not recorded and does not follow from its messages; some ends are a 0"
            return ungraded(name, Reason.VERDICT_MISSING, what)
        if end == INFRASTRUCTURE:
            return ungraded(name, Reason.ENGINE_ERROR, "an infrastructure fault ended it: no verdict on the agent")
        zero = end not in SCORED if self.choices.zeros is None else end in self.choices.zeros
        if not zero:
            return None
        detail = f"0 by rule for {end}: the end state is not looked at"
        return Grade(grader=name, outcome=outcome_of(0.0), reward=0.0, detail=detail)

    def _parts(self, case: EpisodeCase, criteria: Criteria, acts: Sequence[Act]) -> dict[str, _Part]:
        """Every criterion that can be settled, counted or not; counted ones also where they cannot. Raises
        EnvironmentFault."""
        counted = criteria.basis or DEFAULT_BASIS
        calls = [act.call for act in acts if act.call is not None]
        parts: dict[str, _Part] = {}
        if "DB" in counted or (case.environment.capabilities.digest and case.replayed.end_state is not None):
            parts["DB"] = self._state(case, criteria, calls)
        parts["COMMUNICATE"] = self._communicated(case, criteria)
        parts["ACTION"] = _acted(criteria, calls)
        if criteria.assertions or "ENV_ASSERTION" in counted:
            parts["ENV_ASSERTION"] = _asserted(case, criteria.assertions or (), calls)
        if "NL_ASSERTION" in counted:
            judged = criteria.judged
            why = f"{len(judged or ())} statement(s) need a model as judge"
            parts["NL_ASSERTION"] = _Part(None, why) if judged else _Part(1.0, "no statement to judge")
        for other in counted:
            parts.setdefault(other, _Part(None, "this grader does not know the criterion"))
        return parts

    def _state(self, case: EpisodeCase, criteria: Criteria, calls: Sequence[Call]) -> _Part:
        if criteria.actions is None and criteria.assertions is None:
            return _Part(1.0, "the task names no actions")
        needs_digest(case)
        prepare: Prepare = by_value if self.choices.numbers_by_value else copied
        end = self._references.end(case.environment, reference_opening(case), criteria.actions or (), prepare)
        if end.carried.missing:
            return _Part(None, "; ".join(end.carried.missing))
        live = case.replayed.end_state
        if self.choices.numbers_by_value or live is None:
            live = recorded_end(case, calls, prepare)
        equal = live == end.digest
        return _Part(float(equal), "" if equal else "the end state is not the reference's", end.carried.failed)

    def _communicated(self, case: EpisodeCase, criteria: Criteria) -> _Part:
        """All that stands in an assistant's message counts, the scripted greeting and asides included."""
        steps = [step for step in case.replayed.episode.steps if step.kind == "message"]
        spoken = [step for step in steps if step.actor in (Actor.AGENT, Actor.HARNESS) and step.phase != Phase.SETUP]
        said = [content for step in spoken if isinstance(content := step.payload.get("content"), str)]
        unsaid = [text for text in criteria.outputs or () if not self.choices.phrases.found(text, said)]
        return _Part(float(not unsaid), f"not said: {', '.join(unsaid)}" if unsaid else "")


def _product(name: str, basis: Sequence[str], parts: Mapping[str, _Part], flags: tuple[str, ...]) -> Grade:
    settled = {criterion: part.value for criterion, part in parts.items() if part.value is not None}
    unsettled = [criterion for criterion in basis if criterion not in settled]
    flags += tuple(flag for part in parts.values() for flag in part.flags)
    if unsettled:
        why = "; ".join(f"{criterion}: {parts[criterion].note}" for criterion in unsettled)
        return Grade(
            grader=name,
            outcome=ungraded(name, Reason.UNSUPPORTED, why).outcome,
            criteria=settled,
            reason=Reason.UNSUPPORTED,
            detail=why,
            flags=flags,
        )
    reward = 1.0
    for criterion in dict.fromkeys(basis):
        reward *= settled[criterion]
    notes = [f"{criterion}: {part.note}" for criterion in basis if (part := parts[criterion]).note]
    return Grade(
        grader=name,
        outcome=outcome_of(reward),
        reward=reward,
        criteria=settled,
        detail="; ".join(notes),
        flags=flags,
    )


def _acted(criteria: Criteria, calls: Sequence[Call]) -> _Part:
    """ACTION: every reference action is matched by some call, whoever made it."""
    lacking = [action.name for action in criteria.actions or () if not any(matches(action, call) for call in calls)]
    return _Part(float(not lacking), f"not called: {', '.join(lacking)}" if lacking else "")


def matches(action: ReferenceAction, call: Call) -> bool:
    """Whether a call is the reference action: its name, and the arguments to compare: those the action names, or those
    of the call, so that a call with fewer arguments still matches."""
    if action.name != call.name:
        return False
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    wanted: Mapping[str, Any] = action.arguments if isinstance(action.arguments, Mapping) else {}
    compared = tuple(given) if action.compare is None else action.compare
    picked = ({key: side[key] for key in compared if key in side} for side in (given, wanted))
    return next(picked) == next(picked)


def _asserted(case: EpisodeCase, assertions: Sequence[Assertion], calls: Sequence[Call]) -> _Part:
    """ENV_ASSERTION, on the end state in an instance of the grader's own. Raises EnvironmentFault."""
    failed = []
    with recorded_session(case, calls) as session:
        for assertion in assertions:
            space = _space(case.environment.capabilities, assertion)
            answer = session.call(Call(Actor.REFERENCE, assertion.name, copied(assertion.arguments), space))
            said = {"true": True, "false": False}.get(answer.content.strip().lower())
            if answer.missing or answer.error or said is None:
                why = "has no such check" if answer.missing else f"answers {answer.content[:100]!r}"
                return _Part(None, f"{assertion.name}: the environment {why}")
            if said is not assertion.expected:
                failed.append(assertion.name)
    return _Part(float(not failed), f"does not hold: {', '.join(failed)}" if failed else "")


def _space(capabilities: Capabilities, assertion: Assertion) -> str:
    """Where a check stands: among its side's tools, or in a namespace below that side's that only a reference has."""
    side = assertion.namespace
    spaces = [tool.namespace for tool in capabilities.tools if tool.name == assertion.name]
    return next((space for space in spaces if space == side or space.startswith(f"{side}.")), side)


_ENDS = frozenset(
    {
        *SCORED,
        *("max_steps", "too_many_errors", "timeout", "agent_error", "user_error", INFRASTRUCTURE),
        *("context_window_exceeded", "unexpected_error"),
    }
)
_OUR_WORDS = {
    StopReason.USER_ENDED.value: "user_stop",
    StopReason.FINISHED.value: "agent_stop",
    StopReason.STEPS.value: "max_steps",
    StopReason.TIME.value: "timeout",
    StopReason.TOKENS.value: "context_window_exceeded",
    StopReason.SOLVER_ERROR.value: "agent_error",
    StopReason.INFRASTRUCTURE.value: INFRASTRUCTURE,
}
_CHANGES: dict[str, Callable[[Tau2Rule], Tau2Rule]] = {
    "numbers-by-value": lambda rule: replace(rule, numbers_by_value=True),
    "whole-words": lambda rule: replace(rule, phrases=replace(rule.phrases, whole_words=True)),
    "commas-removed": lambda rule: replace(rule, phrases=replace(rule.phrases, commas_removed=True)),
    "without-end": lambda rule: replace(rule, needs_end=False),
}
V0_1 = Tau2("0.1", Tau2Rule(zeros=("too_many_errors", "max_steps")))
V1_0 = Tau2("1.0", Tau2Rule(zeros=None))
