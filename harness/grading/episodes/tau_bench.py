"""tau-bench's rules: the end state equals that of the reference actions, and the required outputs were said.

The benchmark grades inside the step that ends an episode, in the very environment object that the agent acted in. What
follows from that is kept, as named choices of :class:`TauBenchRule`; its parts are played in instances of the grader's
own. Source: the project's environment at the commits that the versions name, `step` and `calculate_reward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from harness.grading.episodes.conversation import Act, acts_of, by_value, copied
from harness.grading.episodes.criteria import Criteria, CriteriaFault, ReferenceAction, criteria_of
from harness.grading.episodes.phrases import Phrases
from harness.grading.episodes.reference import (
    Carried,
    Prepare,
    References,
    carry_out,
    needs_digest,
    opened,
    recorded_end,
    recorded_opening,
    reference_opening,
)
from harness.grading.episodes.variants import choices_made, varied
from harness.grading.episodes.verdicts import invalid, outcome_of, source_digest, ungraded
from harness.protocols import EpisodeCase
from harness.records.environment import EnvironmentFault
from harness.records.grade import Grade
from harness.records.vocabulary import Actor, Reason, StopReason

ID = "tau-bench"
STOP = "###STOP###"
RESPOND = "respond"
TERMINATING = frozenset({"transfer_to_human_agents"})
_USER_ENDED = frozenset({StopReason.USER_ENDED.value, "user_stop"})  # by a record that has no token for it


@dataclass(frozen=True)
class TauBenchRule:
    """The choices of a version. The defaults are the benchmark's own.

    `state_always` False: a task that lists outputs is graded by these alone. `own_state`, `own_log` True: the reference
    runs beside the live state, not in its place, and its `respond` actions do not count as said.
    `copied_arguments` False: a second reference run gets the argument objects that the first may have changed.
    `numbers_by_value`: 250 and 250.0 are one number. `with_terminating`: terminating reference actions are carried out
    too. `stop_alone`: the stop token must be all of the user's message. `cuts_log`, `fails_without_action`: a fork's.
    `needs_end` False: an episode that nothing ended is graded as it stood.
    """

    state_always: bool = True
    phrases: Phrases = field(default_factory=Phrases)
    own_state: bool = False
    own_log: bool = False
    copied_arguments: bool = False
    numbers_by_value: bool = False
    with_terminating: bool = False
    stop_alone: bool = False
    cuts_log: bool = False
    fails_without_action: bool = False
    needs_end: bool = True


@dataclass(frozen=True)
class _Checked:
    """One grading: whether states are equal and outputs said, and what of the reference run went wrong."""

    state: bool
    unsaid: tuple[str, ...]
    carried: Carried
    acted: bool = True


@dataclass(frozen=True)
class TauBench:
    """An :class:`harness.protocols.EpisodeGrader`: one version of tau-bench's rule."""

    version: str
    choices: TauBenchRule
    id: str = ID
    _references: References = field(default_factory=References, repr=False, compare=False)

    @property
    def code(self) -> str:
        return source_digest(["tau_bench"])

    @property
    def rule(self) -> str:
        choices = self.choices
        state = "the end state equals that of the task's reference actions"
        outputs = "every listed output is a part of something the agent told the user (lower case, commas removed)"
        both = f"{state}, and {outputs}"
        said = both if choices.state_always else f"{outputs}; in a task without outputs, {state}"
        grown = "the reference runs in the live environment and its log"
        said += f"; graded at each ending event, the last one counts; {grown}" if not choices.own_state else ""
        said += "; 0 without any action" if choices.fails_without_action else ""
        said += "; afterwards as many log entries as the task has reference actions are cut" if choices.cuts_log else ""
        return said + choices_made(choices, _CHANGES)

    def variant(self, names: Sequence[str]) -> TauBench:
        """This version with named choices made otherwise. Raises ConfigError for an unknown name."""
        return TauBench("+".join((self.version, *names)), varied(self.choices, names, _CHANGES, self.id))

    def grade(self, case: EpisodeCase) -> Grade:
        """Raises nothing of the episode's or the task's: what cannot be graded is a grade with the reason."""
        name = f"{self.id}@{self.version}"
        if not case.replayed.valid:
            return invalid(name, case)
        capabilities = case.environment.capabilities
        acts = acts_of(case.replayed.episode.steps, capabilities, case.replayed.mode)
        endings = self._endings(acts, case)
        if not endings and self.choices.needs_end:
            what = "nothing in the record ends the episode, and the rule grades only inside the step that does"
            return ungraded(name, Reason.VERDICT_MISSING, what)
        try:
            criteria = criteria_of(case.task)
            needs_digest(case)
            checked = self._checked(case, criteria, acts, endings or [len(acts) - 1])
        except CriteriaFault as fault:
            return ungraded(name, Reason.VERDICT_MISSING, f"no criteria: {fault}")
        except EnvironmentFault as fault:
            return ungraded(name, Reason.UNSUPPORTED, str(fault))
        if checked.carried.missing:
            return ungraded(name, Reason.UNSUPPORTED, "; ".join(checked.carried.missing))
        return self._verdict(name, criteria, checked, endings)

    def _endings(self, acts: Sequence[Act], case: EpisodeCase) -> list[int]:
        """Positions of the acts that end the episode: a stop in answer to the agent, or a terminating call."""
        terminating = self._terminating(case)
        endings, answered = [], False
        for position, act in enumerate(acts):
            if act.call is not None and act.actor is Actor.AGENT:
                answered = False
                if act.call.name in terminating:
                    endings.append(position)
            elif act.text is not None and act.actor is Actor.AGENT:
                answered = not act.aside
            elif act.text is not None and answered:
                stopped = act.text.strip() == STOP if self.choices.stop_alone else STOP in act.text
                ended = position == len(acts) - 1 and case.replayed.episode.end in _USER_ENDED
                said_so = ended and STOP not in act.text
                if stopped or said_so:
                    endings.append(position)
        return endings

    @staticmethod
    def _terminating(case: EpisodeCase) -> frozenset[str]:
        return TERMINATING | {tool.name for tool in case.environment.capabilities.tools if tool.ends}

    def _reference(self, criteria: Criteria, case: EpisodeCase) -> list[ReferenceAction]:
        left_out = frozenset() if self.choices.with_terminating else self._terminating(case)
        return [action for action in criteria.actions or () if action.name not in left_out]

    def _checked(self, case: EpisodeCase, criteria: Criteria, acts: Sequence[Act], endings: Sequence[int]) -> _Checked:
        """The last grading of the episode: its reward is the one that is kept."""
        alone = len(endings) == 1 and not any(act.call is not None for act in acts[endings[0] + 1 :])
        if not alone:
            return _Walk(self.choices, case, criteria, self._reference(criteria, case)).through(acts, endings)
        choices, prepare = self.choices, by_value if self.choices.numbers_by_value else copied
        actions = self._reference(criteria, case)
        called = [action for action in actions if action.name != RESPOND]
        end = self._references.end(case.environment, reference_opening(case), called, prepare)
        live = case.replayed.end_state
        if choices.numbers_by_value or live is None:
            live = recorded_end(case, [act.call for act in acts if act.call is not None], prepare)
        log = _said(acts[: endings[0] + 1])
        if not choices.own_log:
            log += [_content(action) for action in actions if action.name == RESPOND]
        unsaid = _unsaid(criteria, log, choices.phrases)
        return _Checked(live == end.digest, unsaid, end.carried, _acted(acts[: endings[0] + 1]))

    def _verdict(self, name: str, criteria: Criteria, checked: _Checked, endings: Sequence[int]) -> Grade:
        parts = {"DB": float(checked.state)}
        if criteria.outputs:
            parts["OUTPUTS"] = float(not checked.unsaid)
        counted = parts if self.choices.state_always or "OUTPUTS" not in parts else {"OUTPUTS": parts["OUTPUTS"]}
        reward = float(all(counted.values()))
        notes = [] if checked.state else ["the end state is not the reference's"]
        notes += [f"not said: {', '.join(checked.unsaid)}"] if checked.unsaid else []
        if self.choices.fails_without_action and not checked.acted:
            reward, notes = 0.0, ["no action was taken"]
        flags = list(checked.carried.failed)
        if len(endings) > 1:
            flags.append(f"{len(endings)} events end the episode: the last one's grade counts")
        if not endings:
            flags.append("nothing ended the episode: graded as it stood")
        return Grade(
            grader=name,
            outcome=outcome_of(reward),
            reward=reward,
            criteria=parts,
            detail="; ".join(notes),
            flags=tuple(flags),
        )


class _Walk:
    """An episode with several endings, or with calls after one, played act by act."""

    def __init__(
        self, choices: TauBenchRule, case: EpisodeCase, criteria: Criteria, actions: list[ReferenceAction]
    ) -> None:
        self.choices, self.case, self.criteria = choices, case, criteria
        self.actions = list(actions)
        self.prepare: Prepare = by_value if choices.numbers_by_value else copied
        self.log: list[str | None] = []  # what was said; None for a tool call

    def through(self, acts: Sequence[Act], endings: Sequence[int]) -> _Checked:
        """Raises EnvironmentFault."""
        found: _Checked | None = None
        with ExitStack() as stack:
            live = stack.enter_context(opened(self.case.environment, recorded_opening(self.case)))
            for position, act in enumerate(acts[: endings[-1] + 1]):
                if act.call is not None:
                    live.call(replace(act.call, arguments=self.prepare(act.call.arguments)))
                    self.log.append(None)
                elif act.actor is Actor.AGENT and not act.aside:
                    self.log.append(act.text)
                if position not in endings:
                    continue
                before = live.digest()
                beside = stack.enter_context(opened(self.case.environment, reference_opening(self.case)))
                called = [action for action in self.actions if action.name != RESPOND]
                carried = carry_out(beside, called, self.prepare)
                own = len(self.log)
                self.log += [_content(action) if action.name == RESPOND else None for action in self.actions]
                said = [text for text in (self.log[:own] if self.choices.own_log else self.log) if text is not None]
                unsaid = _unsaid(self.criteria, said, self.choices.phrases)
                found = _Checked(before == beside.digest(), unsaid, carried, own > 0)
                self._after(own, getattr(beside, "log", None))
                if not self.choices.own_state:
                    live = beside  # the one environment object now holds the reference's state
        if found is None:
            raise EnvironmentFault("no ending was reached", remedy="this is a fault of the grader")
        return found

    def _after(self, own: int, logged: object) -> None:
        """`logged`: the action log of the reference's session, where it keeps one. In the benchmark its entries are the
        task's own argument objects: what a tool did to them is there when the reference is carried out again."""
        if not self.choices.copied_arguments and isinstance(logged, list):
            called = [position for position, action in enumerate(self.actions) if action.name != RESPOND]
            for position, entry in zip(called, logged, strict=False):
                self.actions[position] = replace(self.actions[position], arguments=copied(entry["kwargs"]))
        if self.choices.own_log:
            del self.log[own:]
        elif self.choices.cuts_log:
            cut = len(self.criteria.actions or ())
            self.log = self.log[: len(self.log) - cut] if cut else []


def _said(acts: Sequence[Act]) -> list[str]:
    return [act.text for act in acts if act.text is not None and act.actor is Actor.AGENT and not act.aside]


def _acted(acts: Sequence[Act]) -> bool:
    return any(act.actor is Actor.AGENT and not act.aside for act in acts)


def _content(action: ReferenceAction) -> str:
    content = action.arguments.get("content") if isinstance(action.arguments, dict) else None
    return content if isinstance(content, str) else ""


def _unsaid(criteria: Criteria, log: Sequence[str], phrases: Phrases) -> tuple[str, ...]:
    return tuple(output for output in criteria.outputs or () if not phrases.found(output, log))


_CHANGES: dict[str, Callable[[TauBenchRule], TauBenchRule]] = {
    "own-state": lambda rule: replace(rule, own_state=True),
    "own-log": lambda rule: replace(rule, own_log=True),
    "copied-arguments": lambda rule: replace(rule, copied_arguments=True),
    "numbers-by-value": lambda rule: replace(rule, numbers_by_value=True),
    "with-terminating": lambda rule: replace(rule, with_terminating=True),
    "stop-alone": lambda rule: replace(rule, stop_alone=True),
    "whole-words": lambda rule: replace(rule, phrases=replace(rule.phrases, whole_words=True)),
    "commas-removed": lambda rule: replace(rule, phrases=replace(rule.phrases, commas_removed=True)),
    "without-end": lambda rule: replace(rule, needs_end=False),
}


UNTIL_718FFA1 = TauBench("until-718ffa1", TauBenchRule(state_always=False))
FROM_718FFA1 = TauBench("718ffa1", TauBenchRule())
HAL_CB7CF03 = TauBench("hal-cb7cf03", TauBenchRule(cuts_log=True, fails_without_action=True))
