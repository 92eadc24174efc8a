"""The grader of our own conversation tasks: the state that the conversation left, what was said, and that it ended.

The reference actions are carried out in an instance of the environment of their own. Their end state is the right one:
compared by the environment's digest, so that another way to the same state is as good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness import plugins
from harness.protocols import EpisodeCase
from harness.records.conversation import Conversation
from harness.records.environment import Call
from harness.records.grade import Grade
from harness.records.replay import Replayed
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason

RULE = (
    "passes when the end state has the digest of the state in which the reference actions end; when every expected "
    "output stands in some message of the agent to the user, compared without case and thousands separators, and not "
    "as a part of a longer word or number; and when the conversation was ended by the user or by a tool that ends it "
    "(without a user: by the agent)"
)
_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ENDS = frozenset({StopReason.USER_ENDED.value})
_ENDS_ALONE = frozenset({StopReason.USER_ENDED.value, StopReason.FINISHED.value})


class ReferenceFailed(Exception):
    """A reference action has no answer but an error: the task is at fault."""


class ConversationGrader:
    """An :class:`harness.protocols.EpisodeGrader` for tasks of the format `conversation`."""

    id = "conversation"
    version = "1"
    rule = RULE

    @property
    def code(self) -> str:
        return plugins.code_digest(self) or ""

    def grade(self, case: EpisodeCase) -> Grade:
        asked = case.task if isinstance(case.task, Conversation) else Conversation.model_validate(case.task)
        name = f"{self.id}@{self.version}"
        replayed = case.replayed
        if not replayed.valid or replayed.end_state is None:
            detail = replayed.fidelity.detail or "there is no end state to look at"
            return Grade(grader=name, outcome=Outcome.INVALID, detail=detail)
        try:
            right = reference_state(case, asked)
        except ReferenceFailed as failure:
            return Grade(grader=name, outcome=Outcome.UNGRADED, reason=Reason.GRADER_CRASHED, detail=str(failure))
        criteria = {"state": float(replayed.end_state == right)}
        said = [normalised(text) for text in messages(replayed)]
        for output in asked.outputs:
            criteria[f"said: {output}"] = float(any(stands_in(normalised(output), text) for text in said))
        ends = _ENDS if asked.user is not None else _ENDS_ALONE
        criteria["ended"] = float(replayed.episode.end in ends)
        missing = [criterion for criterion, value in criteria.items() if not value]
        return Grade(
            grader=name,
            outcome=Outcome.FAILED if missing else Outcome.PASSED,
            reward=0.0 if missing else 1.0,
            criteria=criteria,
            detail=f"not met: {', '.join(missing)}" if missing else "",
        )


def reference_state(case: EpisodeCase, asked: Conversation) -> str:
    """The digest of the state in which the reference actions end, in an instance of their own. Raises
    ReferenceFailed."""
    with case.environment.open(case.opening) as session:
        for number, action in enumerate(asked.actions):
            answer = session.call(Call(Actor.REFERENCE, action.name, action.arguments, action.namespace))
            if answer.error or answer.missing:
                raise ReferenceFailed(f"reference action {number} ({action.name}) failed: {answer.content[:300]}")
        return session.digest()


def messages(replayed: Replayed) -> Iterator[str]:
    """What the agent said to the user."""
    for step in replayed.episode.steps:
        if step.kind == "message" and step.actor is Actor.AGENT:
            yield str(step.payload.get("content") or "")


def normalised(text: str) -> str:
    """Without case, thousands separators and runs of white space."""
    return " ".join(_SEPARATOR.sub("", text.casefold()).split())


def stands_in(output: str, text: str) -> bool:
    """Whether an output stands in a text as words of its own: 5 not in 50, nor in 5.25."""
    return re.search(rf"(?<![\w.]){re.escape(output)}(?![\w]|[.,]\d)", text) is not None
