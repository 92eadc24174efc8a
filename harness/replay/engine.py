"""The replay: a recorded episode's own calls, in order, in a new instance of an environment; every answer compared.

Model and user are stubs: what they did is read, not asked for again. Nothing is only warned about. What the record and
the replay disagree on makes the replay invalid from that step on, with the first such step and the share of them
(SOURCES S2, D_first and D_share); what cannot be looked at is counted as unchecked. All calls are carried out even so,
since the share needs them, unless the environment itself fails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.protocols import Environment, EnvironmentSession
from harness.records.archive import DOUBT, Step, Trace
from harness.records.calls import FAILED, OWN_SIDE, call_of, history_of
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening
from harness.records.replay import (
    STATE,
    Fidelity,
    Invalid,
    Match,
    RecordedEpisode,
    Replayed,
    ReplayedStep,
)
from harness.records.vocabulary import Actor
from harness.replay.compare import Compared, compare
from harness.replay.modes import SPEECH, contradiction, lacking
from harness.replay.normalise import STANDARD, Normalisation
from harness.replay.order import end_of, first_break, of_interaction, paired
from harness.replay.witness import contradicted, recorded_trace, unshown

# Of two problems at one step the first of these is told: the others may follow from it.
_FIRST = (Invalid.MODE, Invalid.ACTORS, Invalid.TOOL, Invalid.TRUNCATED, Invalid.UNREACHABLE, Invalid.DIVERGED)


@dataclass(frozen=True)
class Comparison:
    """How strictly is compared. `states`: recorded digests of states too; `digests`: take one after every call that
    may have changed the state, also where none was recorded (to be shown)."""

    rules: Sequence[Normalisation] = STANDARD
    states: bool = True
    digests: bool = False


def replay_episode(
    episode: RecordedEpisode,
    environment: Environment,
    opening: Opening,
    comparison: Comparison = Comparison(),  # frozen
) -> Replayed:
    """Replay an episode. `opening` has the task's own initial state. Each call of this opens new instances.

    Raises EnvironmentFault, before the first step, for a mode or data version that the environment does not offer.
    """
    capabilities = environment.capabilities
    capabilities.check(opening)
    run = _Run(episode, capabilities, opening, comparison)
    wrong = contradiction(episode, capabilities, opening.mode)
    if wrong:
        run.problem(0, Invalid.MODE, wrong)
    doubt = episode.stated.get(DOUBT)
    if doubt:
        run.problem(0, Invalid.ACTORS, str(doubt))
    lacks = lacking(episode, capabilities, opening.mode)
    if lacks:
        run.problem(0, Invalid.TOOL, lacks)
    for broken in (first_break(episode), contradicted(episode, run.trace)):
        if broken is not None:
            run.problem(broken.at, Invalid.TRUNCATED, broken.what)
    try:
        with environment.open(opening) as session:
            run.carry_out(session)
        run.reference(environment)
    except EnvironmentFault as fault:
        run.failed(str(fault))
    except Exception as error:  # noqa: BLE001  # a plug-in may raise anything
        run.failed(f"the environment raised {type(error).__name__}: {error}")
    return run.replayed()


@dataclass
class _Run:
    """One replay as it goes. `at` is the step that is being replayed."""

    episode: RecordedEpisode
    capabilities: Capabilities
    opening: Opening
    comparison: Comparison
    steps: list[ReplayedStep] = field(default_factory=list)
    at: int = 0
    d_first: int | None = None
    end_state: str | None = None
    checkpoints: int = 0
    checkpoints_same: int = 0
    fault: str = ""
    trace: Trace = field(init=False)
    _problems: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trace = recorded_trace(self.episode)

    def problem(self, at: int, what: Invalid, detail: str) -> None:
        self._problems.append((at, _FIRST.index(what), detail))

    def failed(self, why: str) -> None:
        """The environment did, at this step: what is told first may be something else, but this is told too."""
        self.problem(self.at, Invalid.UNREACHABLE, why)
        self.fault = f"the environment failed at step {self.at}: {why}"

    def carry_out(self, session: EnvironmentSession) -> None:
        """Every call of the interaction. Raises EnvironmentFault."""
        episode, states = self.episode, self.episode.states
        for call in history_of(self.opening.initial):
            session.call(call)
        self._checkpoint(session, states.start, states.rule, "at the beginning")
        answers = paired(episode).answers
        for index, step in enumerate(episode.steps):
            if step.kind == "tool.call" and step.actor in OWN_SIDE and of_interaction(step):
                self.at = index
                answer = answers.get(index)
                self._step(session, index, call_of(step, self.capabilities, self.opening.mode), answer)
        self.at = end_of(episode.steps)
        if self.capabilities.digest:
            self.end_state = session.digest()
            self._checkpoint(session, states.end, states.rule, "at the end")

    def reference(self, environment: Environment) -> None:
        """The recorded state of the reference, against a reference run of our own; and whether the end state was it."""
        recorded = self.episode.states
        if not self._comparable(recorded.rule) or not recorded.reference:
            return
        with environment.open(self.opening) as session:
            for call in self._reference_calls():
                session.call(call)
            self._checkpoint(session, recorded.reference, recorded.rule, "after the reference actions")
        if recorded.end_is_reference is not None:
            same = (self.end_state == recorded.reference) is recorded.end_is_reference
            said = "it was" if recorded.end_is_reference else "it was not"
            self._checked(same, f"the state at the end: the record says that {said} the reference's")

    def replayed(self) -> Replayed:
        fidelity = self._fidelity()
        return Replayed(
            episode=self.episode,
            environment=self.capabilities.environment,
            data=self.opening.data or next(iter(self.capabilities.data), ""),
            mode=self.opening.mode,
            steps=tuple(self.steps),
            fidelity=fidelity,
            end_state=self.end_state if fidelity.invalid is None else None,
        )

    def _step(self, session: EnvironmentSession, index: int, call: Call, answered: int | None) -> None:
        recorded = self.episode.steps[answered] if answered is not None else None
        spec = self.capabilities.tool(call.name, call.namespace)
        answer = session.call(replace(call, arguments=_copied(call.arguments)))
        compared = _compared(recorded, answer, self.comparison.rules)
        state_known = self._state_of(session, recorded, call.name)
        if spec is not None and not spec.deterministic and compared.match is Match.KEY:
            compared = self._not_deterministic(compared, writes=spec.writes, state_known=state_known)
        missing = answer.missing and compared.match not in (Match.SAME, Match.COSMETIC)
        if missing:
            unknown = "" if recorded is not None else ", and no recorded answer says that it was refused"
            what = f"there is no tool {call.name} for the {call.actor.value} in this mode{unknown}"
            self.problem(index, Invalid.TOOL, what)
        elif compared.match is Match.KEY:
            self.problem(index, Invalid.DIVERGED, f"{call.name}: {compared.rule}")
        if (missing or compared.match is Match.KEY) and self.d_first is None:
            self.d_first = index
        may_write = spec is None or spec.writes or not spec.deterministic
        shown = self.comparison.digests and may_write and bool(self.capabilities.digest)
        self.steps.append(
            ReplayedStep(
                index=index,
                name=call.name,
                recorded=_text(recorded.payload.get("content")) if recorded is not None else None,
                replayed=answer.content,
                match=compared.match,
                rule=compared.rule,
                state=session.digest() if shown else "",
                missing=missing,
                required=(spec is None or spec.writes) and _succeeded(recorded, answer, compared.match),
            )
        )

    def _state_of(self, session: EnvironmentSession, recorded: Step | None, name: str) -> bool:
        """Whether the state after a step was recorded and is that; a difference is a problem."""
        digest = recorded.payload.get(STATE) if recorded is not None else None
        return self._checkpoint(session, digest or "", self.episode.states.rule, f"after {name}")

    def _checkpoint(self, session: EnvironmentSession, digest: str, rule: str, where: str) -> bool:
        if not digest or not self._comparable(rule):
            return False
        return self._checked(session.digest() == digest, f"the state {where} is not the recorded one")

    def _checked(self, same: bool, what: str) -> bool:
        self.checkpoints += 1
        self.checkpoints_same += same
        if not same:
            self.problem(self.at, Invalid.DIVERGED, what)
            self.d_first = self.at if self.d_first is None else self.d_first
        return same

    def _comparable(self, rule: str) -> bool:
        return self.comparison.states and bool(rule) and rule in self.capabilities.digest

    @staticmethod
    def _not_deterministic(compared: Compared, *, writes: bool, state_known: bool) -> Compared:
        """A tool that answers otherwise each time cannot be compared. One that writes must have left the recorded
        state: where none was recorded, nothing says what the state is now."""
        if writes and not state_known:
            return Compared(Match.KEY, "the tool is not deterministic, and no state was recorded after it")
        return Compared(Match.UNCHECKED, "the tool is declared not to be deterministic")

    def _reference_calls(self) -> list[Call]:
        """The task's reference actions but for those that end an episode."""
        ends = {tool.name for tool in self.capabilities.tools if tool.ends} | SPEECH
        spaces = {tool.name: tool.namespace for tool in reversed(self.capabilities.tools)}
        calls = []
        for step in self.episode.steps:
            name = str(step.payload.get("gen_ai.tool.name"))
            if step.kind == "reference.action" and name not in ends:
                arguments = _copied(step.payload.get("arguments"))
                calls.append(Call(Actor.REFERENCE, name, arguments, spaces.get(name, "agent")))
        return calls

    def _detail(self, first: tuple[int, int, str] | None) -> str:
        if first is None:
            return ""
        other = self.fault and _FIRST[first[1]] is not Invalid.UNREACHABLE
        return f"{first[2]}; then {self.fault}" if other else first[2]

    def _fidelity(self) -> Fidelity:
        counts = Counter(step.match for step in self.steps)
        calls = sum(
            step.kind == "tool.call" and step.actor in OWN_SIDE and of_interaction(step) for step in self.episode.steps
        )
        missing = sum(step.missing for step in self.steps)
        wrong = sum(step.missing or step.match is Match.KEY for step in self.steps)
        required = [step for step in self.steps if step.required]
        first = min(self._problems, default=None)
        compared = len(self.steps) - counts[Match.UNCHECKED]
        return Fidelity(
            steps=calls,
            compared=compared,
            same=counts[Match.SAME],
            cosmetic=counts[Match.COSMETIC],
            key=counts[Match.KEY],
            missing=missing,
            d_first=self.d_first,
            d_share=wrong / calls if calls else 0.0,
            required=len(required),
            required_done=sum(not step.missing and step.match is not Match.KEY for step in required),
            checkpoints=self.checkpoints,
            checkpoints_same=self.checkpoints_same,
            invalid=_FIRST[first[1]] if first is not None else None,
            invalid_at=first[0] if first is not None else None,
            detail=self._detail(first),
            witnesses=self.trace.by,
            unshown=unshown(self.episode, self.trace, answered=compared == calls, states=self.checkpoints > 0),
        )


def _compared(recorded: Step | None, answer: Answer, rules: Sequence[Normalisation]) -> Compared:
    if recorded is None:
        return Compared(Match.UNCHECKED, "no answer was recorded")
    found = compare(_text(recorded.payload.get("content")), answer.content, rules)
    flag = recorded.payload.get("error")
    if found.match is not Match.KEY and isinstance(flag, bool) and flag is not answer.error:
        return Compared(Match.KEY, "it failed, and now it does not" if flag else "it succeeded, and now it fails")
    return found


def _succeeded(recorded: Step | None, answer: Answer, match: Match) -> bool:
    """Whether a call succeeded when it was recorded: by its flag, by the same answer, or by what its answer says."""
    if recorded is None:
        return not answer.error
    flag = recorded.payload.get("error")
    if isinstance(flag, bool):
        return not flag
    if match in (Match.SAME, Match.COSMETIC):
        return not answer.error
    return not _text(recorded.payload.get("content")).startswith(FAILED)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else json.dumps(content)


def _copied(value: object) -> object:
    """A deep copy of a JSON value: an environment may keep what it is given."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(inner) for inner in value]
    return value
