"""A scripted user: a small state machine that answers by keywords. The same script, seed and messages give the same
answers; no model is asked.

To each message apply the rules of its state, in order (:class:`harness.records.conversation.UserRule`). If the first
that applies moves on (calls a tool, changes state, ends), it alone does; else all that apply up to the first that moves
answer together, since a message may ask for several things at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.protocols import Heard
from harness.records.conversation import FACT, Action, UserRule, UserScript
from harness.records.environment import Answer

_MOST_ANSWER_CHARS = 2000

Act = Callable[[Action], Answer]


class ScriptedUser:
    """A :class:`harness.protocols.SimulatedUser`."""

    def __init__(self, script: UserScript, seed: int) -> None:
        self.script = script
        self.state = script.state
        self._rng = random.Random(seed)
        self._turns = self._puzzled = 0

    def open(self) -> str:
        return self._filled(self.script.opening, {})

    def hear(self, message: str, act: Act) -> Heard:
        self._turns += 1
        if self._turns > self.script.most_turns:
            return Heard("I have no more time for this. Goodbye.", ended=True)
        chosen = list(applying(self.script.rules, self.state, message))
        if not chosen:
            self._puzzled += 1
            if self._puzzled > self.script.patience:
                return Heard("This leads nowhere. Goodbye.", ended=True)
            return Heard(self._filled(self._one_of(self.script.lost), {}))
        self._puzzled = 0
        return self._carried_out(chosen, act)

    def _carried_out(self, chosen: list[UserRule], act: Act) -> Heard:
        last = chosen[-1]
        facts: dict[str, str] = {}
        if last.call is not None:
            facts["answer"] = act(self._with_facts(last.call)).content[:_MOST_ANSWER_CHARS]
        if last.to is not None:
            self.state = last.to
        said = [self._filled(self._one_of(rule.say), facts) for rule in chosen if rule.say]
        return Heard(" ".join(dict.fromkeys(said)), ended=last.ends)

    def _with_facts(self, action: Action) -> Action:
        arguments = {name: self._value(value) for name, value in action.arguments.items()}
        return action.model_copy(update={"arguments": arguments, "actor": "user", "namespace": "user"})

    def _value(self, value: Any) -> Any:
        return self._filled(value, {}) if isinstance(value, str) else value

    def _one_of(self, variants: tuple[str, ...]) -> str:
        return variants[self._rng.randrange(len(variants))] if variants else ""

    def _filled(self, text: str, more: dict[str, str]) -> str:
        facts = {**self.script.facts, **more}
        once = FACT.sub(lambda match: self.script.facts.get(match[1], match[0]), text)  # a fact may speak of another
        return FACT.sub(lambda match: facts.get(match[1], match[0]), once)


def applying(rules: Iterable[UserRule], state: str, message: str) -> Iterator[UserRule]:
    """The rules that answer a message together, in order; at most the last of them moves on. Pure."""
    text = " ".join(message.casefold().replace("’", "'").split())
    found = False
    for rule in rules:
        if not _applies(rule, state, text):
            continue
        if rule.moves:
            if not found:
                yield rule
            return
        found = True
        yield rule


def _applies(rule: UserRule, state: str, text: str) -> bool:
    if rule.state and state not in rule.state:
        return False
    if rule.asks is not None and rule.asks is not ("?" in text):
        return False
    if any(word.casefold() in text for word in rule.unless):
        return False
    return not rule.when or any(all(word in text for word in phrase.casefold().split()) for phrase in rule.when)
