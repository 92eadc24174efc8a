"""JSON too large to hold: a document's members one by one, each with the bytes it came from.

The C scanner of the standard library decodes a member where it stands in a window of text; when the window ends inside
the member, more is read and the member is tried again. A member that is broken is told, and the next one is looked for.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from harness.records.archive import ArchiveError, SourceRef

CHUNK = 256 << 10
LARGEST_MEMBER = 256 << 20  # characters of one episode
_SPACE = re.compile(r"[ \t\n\r]*")
_SKIP = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)  # a lone quote: the string goes on past the window
_NEAR_END = 16  # a literal or an escape that is cut is shorter
_SCAN: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder())["scan_once"]
_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"{\x00", "UTF-16"), (b"[\x00", "UTF-16"))


class Reader(Protocol):
    """Anything that gives bytes."""

    def read(self, size: int, /) -> bytes: ...


class Member(NamedTuple):
    """One value of a document. `problem`: it could not be read, and `value` is None; `cut`: since the document ends."""

    path: tuple[str | int, ...]
    value: Any
    source: SourceRef
    problem: str = ""
    cut: bool = False


@dataclass
class _Broken(Exception):
    """A value that cannot be read. `cut`: the document ends inside it."""

    what: str
    cut: bool = False


class _Window:
    """Text of a stream around a position. `offset` is the byte that the position stands at."""

    def __init__(self, stream: Reader, name: str) -> None:
        self._stream, self.name = stream, name
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self.text, self.at, self.offset, self.ended = "", 0, 0, False
        self._last = 0  # characters of the value before: the next one is hardly whole in less, and a vain try costs
        self.fill(CHUNK)

    def fill(self, size: int) -> None:
        """Read at least a byte more, unless the stream has ended."""
        data = self._stream.read(size)
        if self.offset == 0 and self.at == 0 and not self.text:
            data = self._first(data)
        self.ended = not data
        self.text = self.text[self.at :] + self._decode(data, self.ended)
        self.at = 0

    def _first(self, data: bytes) -> bytes:
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                raise ArchiveError(f"the file is {encoding}", place=self.name, remedy="save it as UTF-8")
        if data.startswith(codecs.BOM_UTF8):
            self.offset = 3
            return data[3:]
        return data

    def take(self, end: int) -> bytes:
        """The bytes from the position up to `end`, which becomes the position."""
        data = self.text[self.at : end].encode("utf-8", "surrogateescape")
        self.offset += len(data)
        self.at = end
        return data

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            match = _SPACE.match(self.text, self.at)
            end = match.end() if match else self.at
            self.offset += end - self.at
            self.at = end
            if end < len(self.text) or self.ended:
                return self.text[end : end + 1]
            self.fill(CHUNK)

    def value(self, *, key: bool = False) -> tuple[Any, bytes]:
        """The JSON value here and its bytes. Raises _Broken; the position is then still before it."""
        if not key and len(self.text) - self.at < self._last and not self.ended:
            self.fill(max(CHUNK, self._last))
        while True:
            try:
                value, end = _SCAN(self.text, self.at)
            except RecursionError:
                raise _Broken("it is nested too deeply to read") from None
            except StopIteration as stop:
                self._more(int(stop.value), "no JSON value")
                continue
            except json.JSONDecodeError as error:
                open_string = error.msg.startswith("Unterminated string")
                self._more(len(self.text) if open_string else error.pos, error.msg)
                continue
            except ValueError as error:  # a number of too many digits
                raise _Broken(str(error)) from None
            near = not self.ended and end > len(self.text) - _NEAR_END
            if near and isinstance(value, (int, float)):  # it may go on: `1` of `1.5`, `1e` of `1e-3`
                self.fill(CHUNK)
                continue
            self._last = self._last if key else end - self.at
            return value, self.take(end)

    def _more(self, pos: int, what: str) -> None:
        """Read more if the window may just have ended too early. Raises _Broken."""
        if pos < len(self.text) - _NEAR_END:
            raise _Broken(f"not JSON: {what} at byte {self.offset + len(self._bytes_to(pos))}")
        if self.ended:
            raise _Broken("the document ends inside it", cut=True)
        if len(self.text) - self.at > LARGEST_MEMBER:
            raise _Broken(f"it is larger than {LARGEST_MEMBER >> 20} MiB")
        self.fill(max(CHUNK, len(self.text) - self.at))

    def _bytes_to(self, pos: int) -> bytes:
        return self.text[self.at : pos].encode("utf-8", "surrogateescape")

    def skip(self) -> bool:
        """Go past a value by its brackets alone; False when it never ends."""
        depth = 0
        while True:
            last = self.at
            for match in _SKIP.finditer(self.text, self.at):
                token = match[0]
                if token == '"':
                    last = match.start()
                    break
                last = match.end()
                if token in "[{":
                    depth += 1
                elif token in "]}":
                    depth -= 1
                    if depth <= 0:
                        if depth < 0:  # a scalar, and the bracket that closes what it stands in
                            last -= 1
                        self.take(last)
                        return True
                elif depth == 0:
                    self.take(last)
                    return True
            self.take(last)
            if self.ended or len(self.text) - self.at > LARGEST_MEMBER:
                return False
            self.fill(CHUNK)


class Every:
    """As `streamed`: all fields of a document."""

    def __contains__(self, name: object) -> bool:
        return True


def members(stream: Reader, name: str, streamed: Container[str] = frozenset()) -> Iterator[Member]:
    """The members of a document: elements of a list, or fields of an object.

    A field in `streamed` is not given whole: its elements or fields are, with the path (field, index or key). Problems
    are members too. Reads to the end, so that a digest over the stream is that of the file. Raises ArchiveError for a
    file that is not UTF-8 text or no JSON list or object at all.
    """
    window = _Window(stream, name)
    first = window.peek()
    if first not in ("[", "{"):
        found = "it is empty" if first == "" else f"it begins with {first!r}"
        raise ArchiveError(f"no JSON list or object: {found}", place=name, remedy="name the file that holds results")
    whole = yield from (_elements(window, ()) if first == "[" else _fields(window, (), streamed))
    if whole and window.peek():
        yield _problem(window, (), "the document goes on after its end")
    while not window.ended:
        window.at = len(window.text)
        window.fill(CHUNK)


def lines(stream: Reader, name: str) -> Iterator[Member]:
    """The values of a file of JSON lines; a line that is none is a problem, and the next one is read."""
    window = _Window(stream, name)
    number = 0
    while window.peek():
        source_offset = window.offset
        try:
            value, data = window.value()
            yield _member(window, (number,), value, data, source_offset)
        except _Broken as broken:
            yield _problem(window, (number,), broken.what, cut=broken.cut)
            if not _next_line(window):
                return
        number += 1


def _next_line(window: _Window) -> bool:
    while True:
        end = window.text.find("\n", window.at)
        if end >= 0:
            window.take(end + 1)
            return True
        if window.ended:
            return False
        window.take(len(window.text))
        window.fill(CHUNK)


_Walk = Iterator[Member]


def _elements(window: _Window, path: tuple[str | int, ...]) -> Any:
    """The elements of the list at the position; returns whether its end was found."""
    window.take(window.at + 1)
    index = 0
    if window.peek() == "]":
        window.take(window.at + 1)
        return True
    while True:
        window.peek()
        ok = yield from _one(window, (*path, index))
        index += 1
        if not ok:
            return False
        mark = window.peek()
        if mark in ("]", ","):
            window.take(window.at + 1)
        if mark == "]":
            return True
        if mark != ",":
            yield _problem(window, (*path, index), _instead(mark), cut=not mark)
            return False


def _fields(window: _Window, path: tuple[str | int, ...], streamed: Container[str] = frozenset()) -> Any:
    """The fields of the object at the position; returns whether its end was found."""
    window.take(window.at + 1)
    if window.peek() == "}":
        window.take(window.at + 1)
        return True
    while True:
        try:
            window.peek()
            key, _ = window.value(key=True)
        except _Broken as broken:
            yield _problem(window, path, f"a key cannot be read: {broken.what}", cut=broken.cut)
            return False
        if not isinstance(key, str) or (mark := window.peek()) != ":":
            yield _problem(window, path, "a key and a colon were expected", cut=isinstance(key, str) and not mark)
            return False
        window.take(window.at + 1)
        first = window.peek()
        if key in streamed and first in ("[", "{"):
            ok = yield from (_elements(window, (*path, key)) if first == "[" else _fields(window, (*path, key)))
        else:
            ok = yield from _one(window, (*path, key))
        if not ok:
            return False
        mark = window.peek()
        if mark in ("}", ","):
            window.take(window.at + 1)
        if mark == "}":
            return True
        if mark != ",":
            yield _problem(window, path, _instead(mark), cut=not mark)
            return False


def _instead(mark: str) -> str:
    return "the document ends here, before its closing bracket" if not mark else f"{mark!r} stands where , belongs"


def _one(window: _Window, path: tuple[str | int, ...]) -> Any:
    """One value as a member, or a problem; returns whether what follows it can be read."""
    offset = window.offset
    try:
        value, data = window.value()
    except _Broken as broken:
        yield _problem(window, path, broken.what, cut=broken.cut)
        return not broken.cut and window.skip()
    yield _member(window, path, value, data, offset)
    return True


def _member(window: _Window, path: tuple[str | int, ...], value: Any, data: bytes, offset: int) -> Member:
    source = SourceRef.model_construct(
        file=window.name, offset=offset, length=len(data), sha256="sha256:" + hashlib.sha256(data).hexdigest()
    )
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return Member(path, None, source, f"not UTF-8 at byte {offset + error.start}")
    return Member(path, value, source)


def _problem(window: _Window, path: tuple[str | int, ...], what: str, *, cut: bool = False) -> Member:
    return Member(path, None, SourceRef(file=window.name, offset=window.offset, length=0, sha256=""), what, cut)
