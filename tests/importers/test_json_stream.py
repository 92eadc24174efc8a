"""Members of large documents: the same values and bytes as reading all at once, however the bytes arrive."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.importers import json_stream
from harness.importers.json_stream import Member, lines, members
from harness.records.archive import ArchiveError
from harness.records.base import sha256_of

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


class _Trickle:
    """Gives at most `step` bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file, self._step = io.BytesIO(data), step

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._step))


def _all(data: bytes, *streamed: str, step: int = 1 << 20) -> list[Member]:
    return list(members(_Trickle(data, step), "file", frozenset(streamed)))


@given(st.lists(_VALUES, max_size=6), st.booleans(), st.integers(1, 40), st.sampled_from([None, 2]))
def test_elements_are_those_of_the_document_and_name_their_bytes(
    values: list[Any], ascii_only: bool, step: int, indent: int | None
) -> None:
    data = json.dumps(values, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # lone surrogates cannot be written without escapes
    found = _all(data, step=step)
    assert [member.value for member in found] == values
    for member in found:
        piece = data[member.source.offset : member.source.offset + member.source.length]
        assert json.loads(piece) == member.value
        assert sha256_of(piece) == member.source.sha256


@given(st.lists(_VALUES, min_size=1, max_size=5), st.data())
def test_a_cut_document_gives_what_is_whole_and_says_where_it_ends(values: list[Any], data: st.DataObject) -> None:
    text = json.dumps(values).encode()
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    found = _all(cut, step=7)
    assert found[-1].problem
    whole = [member.value for member in found if not member.problem]
    assert whole == values[: len(whole)] or whole[:-1] == values[: len(whole) - 1]  # a number may be cut into another


def test_a_streamed_field_is_given_element_by_element_and_the_rest_whole() -> None:
    data = b'{"info": {"a": 1}, "sims": [1, {"x": [2]}], "byname": {"k": "v"}, "last": true}'
    found = _all(data, "sims", "byname", step=3)
    assert [(member.path, member.value) for member in found] == [
        (("info",), {"a": 1}),
        (("sims", 0), 1),
        (("sims", 1), {"x": [2]}),
        (("byname", "k"), "v"),
        (("last",), True),
    ]


def test_nesting_a_million_deep_is_told_and_the_next_element_is_read() -> None:
    data = b'[{"a": 1}, ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b', "after ]["]'
    first, deep, last = _all(data)
    assert (first.value, last.value) == ({"a": 1}, "after ][")
    assert "nested too deeply" in deep.problem


def test_one_broken_element_hides_no_other() -> None:
    data = b'[{"a": 1}, {"b": tru}, {"c": "x]"}]'
    good, bad, after = _all(data, step=5)
    assert (good.value, after.value) == ({"a": 1}, {"c": "x]"})
    assert "byte 17" in bad.problem


def test_bytes_that_are_not_utf8_spoil_their_own_element_only() -> None:
    bad, good = _all(b'["caf\xe9", "caf\xc3\xa9"]')
    assert (bad.problem, good.value) == ("not UTF-8 at byte 5", "café")


@pytest.mark.parametrize("data", ["[1]".encode("utf-16"), '{"a": 1}'.encode("utf-16-le")])
def test_another_encoding_is_named(data: bytes) -> None:
    with pytest.raises(ArchiveError, match="UTF-16"):
        _all(data)


def test_a_byte_order_mark_counts_as_three_bytes() -> None:
    (member,) = _all(b"\xef\xbb\xbf[17]")
    assert (member.value, member.source.offset) == (17, 4)


@pytest.mark.parametrize(("data", "what"), [(b"", "empty"), (b"hello", "begins with 'h'")])
def test_what_is_no_document_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(ArchiveError, match=what):
        _all(data)


def test_what_follows_the_document_is_told() -> None:
    assert _all(b"[1] [2]")[-1].problem == "the document goes on after its end"


def test_a_member_larger_than_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "LARGEST_MEMBER", 1000)
    monkeypatch.setattr(json_stream, "CHUNK", 64)
    found = _all(b'["' + b"x" * 5000 + b'", 1]', step=64)
    assert "larger than" in found[0].problem


def test_a_bad_line_is_told_and_the_next_read() -> None:
    found = list(lines(_Trickle(b'{"a": 1}\n{"b": }\n{"c": 3}\n', 4), "file"))
    assert [member.value for member in found] == [{"a": 1}, None, {"c": 3}]
    assert found[1].problem
