"""Operators on diffs: whatever is changed, the diff still applies."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mutations.diff import diff_edits, looks_like_diff, parse_diff
from harness.mutations.edits import Operator, apply_edit

CALC_OLD = (
    "def total(items):\n    return sum(items[1:])\n\n\n" + "#\n" * 5 + "    if not items:\n        return 1\n    end\n"
)
CALC_NEW = (
    "def total(items):\n    limit = 10\n    return sum(items) if len(items) < limit else 0\n\n\n"
    + "#\n" * 5
    + "    if not items:\n        return 0\n    end\n"
)


def diff_of(old: str, new: str, name: str, context: int) -> str:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    text = "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=context))
    return f"diff --git a/{name} b/{name}\n{text}"


DIFF = diff_of(CALC_OLD, CALC_NEW, "calc.py", 1) + (
    "diff --git a/notes.txt b/notes.txt\n--- a/notes.txt\n+++ b/notes.txt\n"
    "@@ -2,2 +2 @@\n-gone\n kept\n\\ No newline at end of file\n"
)


def applied(diff: str, old: list[str]) -> list[str]:
    """The new lines. Strict: every header's places and counts, and every context line, must be right."""
    new: list[str] = []
    at = 0
    for file in parse_diff(diff):
        for hunk in file.hunks:
            start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
            new += old[at:start]
            at = start
            assert len(new) == (hunk.new_start - 1 if hunk.new_count else hunk.new_start)
            for line in hunk.body:
                sign, text = line.text[0], line.text[1:]
                if sign in " -":
                    assert old[at] == text
                    at += 1
                if sign in " +":
                    new.append(text)
    return new + old[at:]


def after(operator: Operator) -> list[str]:
    return [apply_edit(DIFF, edit) for edit in diff_edits(DIFF) if edit.operator is operator]


def test_dropping_a_hunk_moves_the_later_ones() -> None:
    assert "@@ -1,3 +1,4 @@" in DIFF
    assert "@@ -10,3 +11,3 @@" in DIFF
    first, second, only = after(Operator.DROP_HUNK)
    assert "@@ -1,3" not in first
    assert "@@ -10,3 +10,3 @@" in first
    assert "@@ -10,3" not in second
    assert "@@ -1,3 +1,4 @@" in second
    assert "notes.txt" not in only
    assert "calc.py" in only


def test_dropping_an_added_line_mends_the_counts() -> None:
    limit, total, zero = after(Operator.DROP_ADDED)
    assert "limit = 10" not in limit
    assert "@@ -1,3 +1,3 @@" in limit
    assert "@@ -10,3 +10,3 @@" in limit
    assert "sum(items) if" not in total
    assert "@@ -10,3 +11,2 @@" in zero


def test_literals_and_comparisons_of_added_lines_change_in_place() -> None:
    assert any("+    limit = 11\n" in text for text in after(Operator.NUMBER))
    assert any("if len(items) >= limit" in text for text in after(Operator.COMPARISON))
    assert all("-    return sum(items[1:])" in text for text in after(Operator.NUMBER))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text",
        "--- a\n+++ b\n",
        "--- a\n+++ b\n@@ -1,9 +1 @@\n-x\n",
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a\n@@ bad\n",
    ],
)
def test_what_is_no_whole_diff_is_left_alone(text: str) -> None:
    assert not looks_like_diff(text)
    assert diff_edits(text) == ()


LINES = st.lists(st.sampled_from(["a = 1\n", "if x < 3:\n", "b\n", "\n", 'c = "word"\n', "--- x\n"]), max_size=24)


@given(LINES, LINES, st.integers(0, 3))
def test_every_mutant_of_a_diff_applies(old: list[str], new: list[str], context: int) -> None:
    diff = "".join(difflib.unified_diff(old, new, "a/f", "b/f", n=context))
    if diff:
        assert applied(diff, old) == new
    for edit in diff_edits(diff):
        mutant = apply_edit(diff, edit)
        assert mutant != diff
        result = applied(mutant, old)
        assert result != new or edit.operator is Operator.DROP_HUNK


@given(st.text(st.sampled_from("-+@ \\,1ab\n\r") | st.characters(), max_size=120))
def test_any_text_can_be_read_as_a_diff(text: str) -> None:
    for edit in diff_edits(text):
        assert apply_edit(text, edit) != text
