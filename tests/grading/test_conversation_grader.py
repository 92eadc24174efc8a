"""What counts as said: case and thousands separators do not matter, being a part of something else does."""

from __future__ import annotations

import pytest

from harness.grading.conversation import normalised, stands_in


@pytest.mark.parametrize(
    ("output", "text", "stands"),
    [
        ("$327", "It costs $327.", True),
        ("$327", "It costs $3,271.", False),
        ("$1628", "You paid $1,628 in all", True),
        ("1,628", "1628", True),
        ("$50", "That is $50.25", False),
        ("$50", "That is $500", False),
        ("5", "You have 5 bags, 50 in all", True),
        ("5", "You have 15 bags, 50 in all", False),
        ("5", "Version 2.5", False),
        ("ASY001", "flight asy001, tomorrow", True),
        ("ASY001", "flight ASY0011", False),
        ("08:35", "at 08:35 EST", True),
        ("two  words", "Two\nwords here", True),
        ("1,2", "1, 2", False),
    ],
)
def test_an_output_stands_in_what_was_said_as_words_of_its_own(output: str, text: str, stands: bool) -> None:
    assert stands_in(normalised(output), normalised(text)) is stands
