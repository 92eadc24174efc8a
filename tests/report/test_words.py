"""Text of others is made fit for a terminal: nothing in it steers, nothing in it is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.report.words import first_line, one_line, printable

ANY_TEXT = st.text(st.characters(exclude_categories=[]))  # lone surrogates and control characters too


@given(ANY_TEXT)
def test_printable_text_holds_nothing_that_steers_and_can_be_encoded(text: str) -> None:
    made = printable(text)
    assert all(character in "\t\n" or character >= " " for character in made)
    assert not set(made) & {"\x7f", "\x9b", "\u202e", "\u2028"}
    made.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"])))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(ANY_TEXT)
def test_a_line_is_one_line(text: str) -> None:
    assert "\n" not in one_line(text)
    assert "\n" not in first_line(text)


def test_what_steers_is_written_out() -> None:
    assert printable("a\x1b[2Jb\r\nc\rd\x00\udcff") == "a\\x1b[2Jb\nc\\rd\\x00\\udcff"
    assert first_line("\n  \n KeyError: 'x'\nmore") == "KeyError: 'x'"
    assert first_line(" \n") == ""
    assert one_line("a \n\t b") == "a b"
