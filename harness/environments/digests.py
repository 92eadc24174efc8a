"""Digests of a database's whole text, made again only from the first changed record on.

Both rules that matter here hash one long text: records in the order of their keys, tables in the order of theirs. The
text of a shared database is cut into blocks once, with the state of the hash kept before each; a session whose records
27 and 900 differ starts at the block of record 27 and writes only the two blocks anew.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.environments.overlay import Database, Overlay
from harness.records.environment import EnvironmentFault

_BLOCK_RECORDS = 32


@dataclass(frozen=True)
class Dialect:
    """How a rule writes the text: the database, a table in it, a record in that.

    `single` follows the last record of a table that has just one (Python's tuples need a comma there).
    """

    opening: str
    table: Callable[[str], str]  # what stands before the records of a table
    record: Callable[[str, Any], str]
    single: str
    table_end: str
    single_table: str
    closing: str
    glue: str = ", "


def tuple_text(value: Any) -> str:
    """Python's `str()` of the nested tuples that a JSON value becomes: objects as (key, value) pairs sorted by key."""
    if isinstance(value, dict):
        parts = [f"({key!r}, {tuple_text(inner)})" for key, inner in sorted(value.items())]
    elif isinstance(value, (list, tuple)):
        parts = [tuple_text(inner) for inner in value]
    else:
        return repr(value)
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


TUPLES = Dialect(
    opening="(",
    table=lambda name: f"({name!r}, (",
    record=lambda key, value: f"({key!r}, {tuple_text(value)})",
    single=",",
    table_end="))",
    single_table=",",
    closing=")",
)

_SORTED_JSON = json.JSONEncoder(sort_keys=True)

SORTED_JSON = Dialect(
    opening="{",
    table=lambda name: f"{json.dumps(name)}: {{",
    record=lambda key, value: f"{json.dumps(key)}: {_SORTED_JSON.encode(value)}",
    single="",
    table_end="}",
    single_table="",
    closing="}",
)


@dataclass(frozen=True)
class _Block:
    """Records of one table, by key in order; `before` is the hash of all text up to and without their first."""

    keys: tuple[str, ...]
    texts: tuple[str, ...]
    text: bytes
    before: Any


class DatabaseDigest:
    """The digest under a dialect of a shared database and of every session's changes to it."""

    def __init__(self, base: Database, dialect: Dialect, *, block_records: int = _BLOCK_RECORDS) -> None:
        self.base = base
        self._block_records = block_records
        self._dialect = dialect
        self._tables = sorted(base)
        self._blocks: dict[str, list[_Block]] = {}
        self._firsts: dict[str, list[str]] = {}
        hasher = hashlib.sha256(dialect.opening.encode())
        for position, table in enumerate(self._tables):
            hasher.update(self._before_table(position).encode())
            self._blocks[table] = self._cut(table, hasher)
            self._firsts[table] = [block.keys[0] for block in self._blocks[table] if block.keys]
            hasher.update(self._after_table(len(base[table])).encode())
        hasher.update(self._end().encode())
        self.untouched = hasher.hexdigest()  # of the shared database itself

    def of(self, overlay: Overlay) -> str:
        """The hexadecimal digest of the session's state. The overlay must lie over the same database.

        Raises EnvironmentFault for a record that is nested too deeply to be written.
        """
        try:
            changed = {table: self._changed(table, own) for table, own in overlay.own.items() if own}
        except RecursionError as error:
            raise EnvironmentFault(
                "the state is nested too deeply to be written", remedy="see what the last call stored"
            ) from error
        if not changed:
            return self.untouched
        first = min(self._tables.index(table) for table in changed)
        hasher = None
        for position, table in enumerate(self._tables[first:], first):
            if hasher is not None:
                hasher.update(self._before_table(position).encode())
            blocks = self._blocks[table]
            dirty = changed.get(table, {})
            start = 0 if hasher is not None else min(dirty)
            if hasher is None:
                hasher = blocks[start].before.copy()
            for number in range(start, len(blocks)):
                text = self._rewritten(blocks[number], dirty[number]) if number in dirty else blocks[number].text
                if number and text:
                    hasher.update(self._dialect.glue.encode())
                hasher.update(text)
            hasher.update(self._after_table(overlay.count(table)).encode())
        assert hasher is not None  # a changed table was found above
        hasher.update(self._end().encode())
        return str(hasher.hexdigest())

    def _cut(self, table: str, hasher: Any) -> list[_Block]:
        """The blocks of a table, at least one, each with the hash before it; the hasher has read them all after."""
        records = self.base[table]
        keys = sorted(records)
        blocks = []
        for start in range(0, len(keys) or 1, self._block_records):
            part = tuple(keys[start : start + self._block_records])
            texts = tuple(self._dialect.record(key, records[key]) for key in part)
            text = self._dialect.glue.join(texts).encode()
            blocks.append(_Block(part, texts, text, hasher.copy()))
            if start:
                hasher.update(self._dialect.glue.encode())
            hasher.update(text)
        return blocks

    def _changed(self, table: str, own: Mapping[str, Any]) -> dict[int, dict[str, str]]:
        """Block number -> key -> text, for a session's own records of a table."""
        changed: dict[int, dict[str, str]] = {}
        firsts = self._firsts[table]
        for key, record in own.items():
            number = max(bisect_right(firsts, key) - 1, 0)
            changed.setdefault(number, {})[key] = self._dialect.record(key, record)
        return changed

    def _rewritten(self, block: _Block, changed: Mapping[str, str]) -> bytes:
        texts = dict(zip(block.keys, block.texts, strict=True))
        added = changed.keys() - texts.keys()
        texts.update(changed)
        keys = sorted(texts) if added else block.keys
        return self._dialect.glue.join([texts[key] for key in keys]).encode()

    def _before_table(self, position: int) -> str:
        return (self._dialect.glue if position else "") + self._dialect.table(self._tables[position])

    def _after_table(self, records: int) -> str:
        return (self._dialect.single if records == 1 else "") + self._dialect.table_end

    def _end(self) -> str:
        return (self._dialect.single_table if len(self._tables) == 1 else "") + self._dialect.closing
