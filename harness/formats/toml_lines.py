"""The line of every key in a TOML text.

`tomllib` says what a document holds and not where. This scanner walks a document that `tomllib` has already
accepted, so it need not judge: it only follows keys, strings and brackets. It runs when there is an error to place.
"""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^\s,\]}#]+(?:[ ][0-9:.+-]+Z?)?")  # the blank is the one a date-time may have
_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[btnfr"\\])')
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map each key path (array items by index) of a valid document to the 1-based line where it first stands."""
    return _Scanner(text).scan()


def nearest_line(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """The line of `path`, or of its closest parent that is written down; None for the whole document."""
    for length in range(len(path), 0, -1):
        if (line := lines.get(path[:length])) is not None:
            return line
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.counts: dict[KeyPath, int] = {}  # tables seen so far in each array of tables

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip(" \t\r\n"):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._assignment(table)
        return self.lines

    def _skip(self, blanks: str) -> bool:
        """Pass blanks and comments; whether anything is left."""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in blanks:
                self.at += 1
            else:
                return True
        return False

    def _note(self, path: KeyPath, start: int) -> None:
        line = self.text.count("\n", 0, start) + 1
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _header(self) -> KeyPath:
        start = self.at
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        path = self._inside_arrays(self._key())
        self.at = self.text.index("]", self.at) + (2 if array else 1)
        if array:
            index = self.counts.get(path, 0)
            self.counts[path] = index + 1
            path = (*path, index)
        self._note(path, start)
        return path

    def _inside_arrays(self, key: KeyPath) -> KeyPath:
        """A header below an array of tables means the array's last table."""
        path: KeyPath = ()
        for place, part in enumerate(key):
            path = (*path, part)
            if place < len(key) - 1 and path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _assignment(self, table: KeyPath) -> None:
        start = self.at
        path = (*table, *self._key())
        self._note(path, start)
        self.at = self.text.index("=", self.at) + 1
        self._value(path)

    def _key(self) -> KeyPath:
        parts: list[str] = []
        while True:
            self._skip(" \t")
            parts.append(self._key_part())
            self._skip(" \t")
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _key_part(self) -> str:
        quote = self.text[self.at]
        if quote in "\"'":
            start = self.at + 1
            self._string()
            raw = self.text[start : self.at - 1]
            return _ESCAPE.sub(_unescape, raw) if quote == '"' else raw
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            raise ValueError(f"no key at offset {self.at}: the document was not checked before")
        self.at = bare.end()
        return bare.group()

    def _value(self, path: KeyPath) -> None:
        self._skip(" \t\r\n")
        opener = self.text[self.at]
        if opener in "\"'":
            self._string()
        elif opener == "[":
            self._array(path)
        elif opener == "{":
            self._inline_table(path)
        else:
            scalar = _SCALAR.match(self.text, self.at)
            self.at = scalar.end() if scalar else self.at + 1

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while self._skip(" \t\r\n,") and self.text[self.at] != "]":
            self._note((*path, index), self.at)
            self._value((*path, index))
            index += 1
        self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self._skip(" \t\r\n,") and self.text[self.at] != "}":
            self._assignment(path)
        self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        long = quote * 3
        if self.text.startswith(long, self.at):
            self.at = self._end_of(long, self.at + 3, escapes=quote == '"')
            while self.text.startswith(quote, self.at):  # up to two quotes may stand before the closing three
                self.at += 1
        else:
            self.at = self._end_of(quote, self.at + 1, escapes=quote == '"')

    def _end_of(self, closer: str, at: int, *, escapes: bool) -> int:
        while not self.text.startswith(closer, at):
            at += 2 if escapes and self.text[at] == "\\" else 1
        return at + len(closer)


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    return _SHORT[code] if len(code) == 1 else chr(int(code[1:], 16))
