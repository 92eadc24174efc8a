"""The scripted user: which rules answer, that it never varies, that it always ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.conversation import Action, UserRule, UserScript
from harness.records.environment import Answer
from harness.simulation.user import ScriptedUser, applying


def script(*rules: UserRule, **changes: Any) -> UserScript:
    values: dict[str, Any] = {
        "opening": "I am {name}.",
        "facts": {"name": "Ada", "id": "ada_1", "trip": "ABC123", "request": "Cancel it."},
        "rules": rules,
        **changes,
    }
    return UserScript(**values)


ASK_ID = UserRule(when=("your id", "user id"), say=("It is {id}.",))
ASK_TRIP = UserRule(when=("which trip",), say=("{trip}.",))
DONE = UserRule(when=("has been",), unless=("could you",), say=("Bye.",), ends=True)


def no_tools(action: Action) -> Answer:
    raise AssertionError(f"{action.name} was called")


def test_a_message_that_asks_for_two_things_is_answered_in_one() -> None:
    user = ScriptedUser(script(ASK_ID, ASK_TRIP, DONE), 0)
    assert user.open() == "I am Ada."
    assert user.hear("What is your ID, and which trip do you mean?", no_tools).text == "It is ada_1. ABC123."


def test_a_rule_that_moves_on_does_so_alone_and_last() -> None:
    user = ScriptedUser(script(ASK_ID, DONE), 0)
    heard = user.hear("It has been found. What is your id?", no_tools)
    assert (heard.text, heard.ended) == ("It is ada_1.", False)
    assert user.hear("It has  been cancelled.", no_tools).ended


@pytest.mark.parametrize(
    ("rule", "state", "message", "applies"),
    [
        (UserRule(when=("cancel reservation",)), "asking", "Shall I CANCEL your whole reservation?", True),
        (UserRule(when=("can't",)), "asking", "I can’t do that.", True),
        (UserRule(when=("a b", "c")), "asking", "only c", True),
        (UserRule(when=("a",), unless=("b",)), "asking", "a b", False),
        (UserRule(asks=False), "asking", "Is it so?", False),
        (UserRule(asks=False), "asking", "It is so.", True),
        (UserRule(state=("later",)), "asking", "anything", False),
        (UserRule(state=("asking", "later")), "asking", "anything", True),
    ],
)
def test_when_a_rule_applies(rule: UserRule, state: str, message: str, applies: bool) -> None:
    assert list(applying([rule], state, message)) == ([rule] if applies else [])


def test_its_tools_are_called_with_its_facts_and_it_says_what_they_gave() -> None:
    press = UserRule(
        when=("press",),
        say=("It says {answer}.",),
        call=Action(name="press", arguments={"on": "{trip}", "n": 2}),
        to="x",
    )
    called: list[Action] = []

    def act(action: Action) -> Answer:
        called.append(action)
        return Answer("beep")

    user = ScriptedUser(script(press), 0)
    assert user.hear("Please press it.", act).text == "It says beep."
    assert (called[0].arguments, called[0].actor, called[0].namespace) == ({"on": "ABC123", "n": 2}, "user", "user")
    assert user.state == "x"


def test_what_it_does_not_understand_it_bears_for_a_while() -> None:
    user = ScriptedUser(script(DONE, patience=2, lost=("What? {request}",)), 0)
    heard = [user.hear("Hm.", no_tools) for _ in range(3)]
    assert [one.ended for one in heard] == [False, False, True]
    assert heard[0].text == "What? Cancel it."


def test_a_fact_may_speak_of_another_and_nothing_is_said_twice() -> None:
    made = script(
        ASK_TRIP, UserRule(when=("how",), say=("{trip}.",)), facts={"trip": "{id}-1", "id": "7", "name": "Ada"}
    )
    assert ScriptedUser(made, 0).hear("How, and which trip?", no_tools).text == "7-1."
    assert script(facts={"name": "{nam}"}).unknown_facts() == ("nam",)


def test_facts_that_are_none_are_told() -> None:
    assert script(UserRule(say=("{nam}",)), ASK_ID).unknown_facts() == ("nam",)
    assert script(UserRule(say=("{answer}",), call=Action(name="x", arguments={"a": "{tripp}"}))).unknown_facts() == (
        "tripp",
    )


@given(messages=st.lists(st.text(max_size=40), max_size=40), seed=st.integers(0, 2**32))
def test_the_same_messages_get_the_same_answers_and_every_conversation_ends(messages: list[str], seed: int) -> None:
    made = script(
        UserRule(when=("a",), say=("one", "two", "three")),
        UserRule(when=("b",), say=("four", "five"), to="later"),
        DONE,
    )
    one, other = ScriptedUser(made, seed), ScriptedUser(made, seed)
    assert [one.hear(text, no_tools) for text in messages] == [other.hear(text, no_tools) for text in messages]
    tireless = ScriptedUser(made, seed)
    assert any(tireless.hear("a", no_tools).ended for _ in range(made.most_turns + 1))
