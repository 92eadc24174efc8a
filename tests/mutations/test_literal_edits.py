"""Literals and comparisons in code of any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mutations.edits import apply_edit
from harness.mutations.literals import comparison_edits, larger, literal_edits, number_edits


def changed(code: str) -> set[str]:
    return {apply_edit(code, edit) for edit in literal_edits(code)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("limit = 9", {"limit = 10"}),
        ("page 007", {"page 008"}),
        ("rate * 1.5", {"rate * 2.5"}),
        ("x1 = v2", set()),
        ("a == b", {"a != b"}),
        ("if n <= m:", {"if n > m:"}),
        ("i < n", {"i >= n"}),
        ("$total>$most", {"$total<=$most"}),
        ("f = 'left'", {"f = 'leftt'"}),
        ("cmd 2>err", {"cmd 3>err"}),
        ("cmd >/dev/null", set()),
        ('print x > "out"', {'print x > "outt"'}),
        ("a -> b, c => d, e >> f, p <<= q", set()),
    ],
)
def test_each_literal_changes_once(code: str, expected: set[str]) -> None:
    assert changed(code) == expected


def test_awk_fields_change_only_where_asked() -> None:
    assert [apply_edit("$2", edit) for edit in literal_edits("$2")] == []
    assert [apply_edit("$2", edit) for edit in literal_edits("$2", fields=True)] == ["$3"]


@given(st.integers(0, 10**9), st.integers(1, 12))
def test_a_larger_number_is_one_larger_and_no_narrower(number: int, width: int) -> None:
    text = str(number).zfill(width)
    assert int(larger(text)) == number + 1
    assert len(larger(text)) in (len(text), len(text) + 1)


@given(st.text(st.sampled_from("<>=!&| \t1ab$(\"'") | st.characters(), max_size=40))
def test_every_edit_changes_its_text(code: str) -> None:
    for edit in [*number_edits(code), *comparison_edits(code), *literal_edits(code, fields=True)]:
        assert apply_edit(code, edit) != code
