"""Every key of a document has the line it stands in."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.formats.toml_lines import KeyPath, key_lines, nearest_line

DOCUMENT = '''\
# a comment = with a sign
title = "a # no comment"
when = 1979-05-27 07:32:00Z
"quoted \\u0041 key".inner = 1

[table]
text = """
[not.a.table]
x = 1 \\""" still
"""""
raw = \'\'\'
y = 2
\'\'\'\'
list = [
  1, # one
  [2, 3],
  { deep = "]", er = { yet = 1 } },
]
[table.sub]
inline = { a.b = 1, c = [ "x", "y" ] }

[[many]]
name = "first"
[[many]]
name = 'second'
  [many.inner]
  z = +inf
  [[many.inner.deep]]
  q = 0x1F
'''


def paths_of(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [*([path] if path else []), *(deep for key, inner in items for deep in paths_of(inner, (*path, key)))]


def test_every_path_of_a_document_has_a_line() -> None:
    assert set(key_lines(DOCUMENT)) == set(paths_of(tomllib.loads(DOCUMENT)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("title",), "title ="),
        (("when",), "when ="),
        (("quoted A key", "inner"), '"quoted'),
        (("table", "text"), 'text = """'),
        (("table", "raw"), "raw ="),
        (("table", "list", 1, 1), "  [2, 3]"),
        (("table", "list", 2, "er", "yet"), "  { deep"),
        (("table", "sub", "inline", "a", "b"), "inline ="),
        (("many", 0, "name"), 'name = "first"'),
        (("many", 1, "name"), "name = 'second'"),
        (("many", 1, "inner", "deep", 0, "q"), "  q ="),
    ],
)
def test_the_line_is_where_the_key_stands(path: KeyPath, text: str) -> None:
    assert DOCUMENT.splitlines()[key_lines(DOCUMENT)[path] - 1].startswith(text)


def test_a_missing_key_is_placed_at_its_table() -> None:
    lines = key_lines(DOCUMENT)
    assert nearest_line(lines, ("table", "sub", "absent")) == lines[("table", "sub")]
    assert nearest_line(lines, ("absent",)) is None


def test_carriage_returns_do_not_move_lines() -> None:
    assert key_lines(DOCUMENT.replace("\n", "\r\n")) == key_lines(DOCUMENT)


KEYS = st.from_regex(r"[a-z][a-z0-9_-]{0,5}", fullmatch=True)
SCALARS = st.sampled_from(
    ["1", "-2.5e3", "true", '"text # = ["', "'raw \\'", '"""a\n[b]\nc = 1\n"""', "1979-05-27", "'''x\n\"y'''", "nan"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[" + " ,\n".join(parts) + "]")
        | st.dictionaries(KEYS, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=6,
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4)


@given(st.dictionaries(KEYS, TABLES, max_size=3), TABLES, st.integers(0, 2), st.sampled_from(["\n", "\r\n"]))
def test_any_document_is_followed(tables: dict[str, dict[str, str]], root: dict[str, str], many: int, end: str) -> None:
    lines = [f"{key} = {value} # why" for key, value in root.items() if key not in tables and key != "array"]
    for name, table in tables.items():
        header = f"[[{name}]]" if name == "array" else f"[ {name} . in ]"
        lines += [header, *(f"{key}={value}" for key, value in table.items())]
    lines += ["[[array-of-tables]]\nx.y = 1"] * many
    document = end.join(lines)
    assert set(key_lines(document)) == set(paths_of(tomllib.loads(document)))
