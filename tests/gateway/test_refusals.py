"""What services say when they refuse, whatever they wrap it in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.refusals import MOST_CHARS, said_in


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "offer a tool", "type": "invalid_request_error"}}, "offer a tool"),
        ([{"error": {"code": 400, "message": "offer a tool"}}], "offer a tool"),
        ({"error": "offer\n a tool"}, "offer a tool"),
        ({"object": "error", "message": "offer a tool"}, "offer a tool"),
        ({"detail": [{"loc": ["body", "tools"], "msg": "offer a tool"}]}, "body.tools: offer a tool"),
        ({"error": {"code": 7}}, '{"error": {"code": 7}}'),
        (7, "7"),
    ],
)
def test_the_sentence_is_taken_out_of_its_json(body: Any, said: str) -> None:
    assert said_in(json.dumps(body)) == said


def test_what_is_no_json_stays_as_it_is_and_a_long_text_ends_in_dots() -> None:
    assert said_in("<html>\n  Bad Gateway") == "<html> Bad Gateway"
    assert said_in("x" * 600) == "x" * (MOST_CHARS - 1) + "…"
    assert said_in("[" * 100_000).startswith("[[[")


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part))
)
def test_any_json_is_read(body: Any) -> None:
    assert len(said_in(json.dumps(body))) <= MOST_CHARS
