"""A task that is a conversation: an environment with tools, a user with a script, and what should come of it."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import Field

from harness.records.base import Record

FACT = re.compile(r"\{([a-z_][a-z0-9_]*)\}")  # a fact's place in what a scripted user says


class Action(Record):
    """A tool call that a reference makes, in the name of its `actor`: agent or user."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    actor: str = Field(default="agent", pattern="^(agent|user)$")
    namespace: str = Field(default="agent", pattern="^(agent|user)$")


class UserRule(Record):
    """What a scripted user answers to a message, in a state of its own.

    A rule applies when the message holds all words of one of the phrases in `when` (no phrase: any message), none of
    the words in `unless`, and a question mark or not as `asks` says. `{name}` in what it says is a fact of the
    script, or `{answer}`, what the user's own tool returned.
    """

    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    asks: bool | None = None
    state: tuple[str, ...] = ()  # the states in which it applies; empty: all
    say: tuple[str, ...] = ()  # one of these, by the seed
    call: Action | None = None  # of the user's own tools, before it says anything
    to: str | None = None  # the next state
    ends: bool = False

    @property
    def moves(self) -> bool:
        """Whether it does more than answer."""
        return self.ends or self.call is not None or self.to is not None


class UserScript(Record):
    """A simulated user: deterministic, given the seed and what the agent says."""

    opening: str = Field(min_length=1)
    facts: dict[str, str] = {}
    rules: tuple[UserRule, ...] = ()
    state: str = "asking"  # the first
    lost: tuple[str, ...] = ("I am not sure what you mean.",)  # when no rule applies
    patience: int = Field(default=4, ge=0)  # messages in a row to which no rule applies; then the user leaves
    most_turns: int = Field(default=30, gt=0)  # of the user; then it leaves

    def unknown_facts(self) -> tuple[str, ...]:
        """Names in braces that are no facts of the script."""
        texts = [self.opening, *self.lost, *self.facts.values(), *(text for rule in self.rules for text in rule.say)]
        texts += [json.dumps(rule.call.arguments) for rule in self.rules if rule.call is not None]
        named = {match for text in texts for match in FACT.findall(text)}
        return tuple(sorted(named - self.facts.keys() - {"answer"}))


class Conversation(Record):
    """What an episode happens in, and what should come of it. `folder` is where the data lies, not what is measured."""

    environment: str = Field(min_length=1)  # name@version, a file's, or a carrier's: command:…, container:…
    mode: str
    data: str = ""
    folder: str = ""
    initial: dict[str, Any] = {}
    user: UserScript | None = None  # None: solo, the instruction is all there is
    actions: tuple[Action, ...] = ()  # what the reference does; the state it ends in is the right one
    outputs: tuple[str, ...] = ()  # what the agent must have told the user
