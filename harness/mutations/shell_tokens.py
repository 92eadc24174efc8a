"""Shell text as tokens with their places: enough of the grammar to edit a script, not to run it.

Quotes, expansions, substitutions and array assignments stay whole inside their word. Here-documents are bodies of
the line that announces them. What cannot be understood becomes a word up to the end of the text, never an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_OPERATORS = (";;&", ";;", ";&", "&&", "||", "|&", "|", "&", ";", "(", ")")
_REDIRECTION = re.compile(r"\d*(?:&>>|&>|<<<|<<-|<<|<&|>&|<>|>>|>\||<(?!\()|>(?!\())")
_BLANKS = " \t\r"
_ENDS_WORD = " \t\n;&|<>()"
_OPENS_COMMAND = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"})


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    OPERATOR = "operator"
    REDIRECTION = "redirection"  # with its target
    NEWLINE = "newline"  # with the here-documents that follow it


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The body of a here-document; `quoted`: nothing in it is expanded."""

    start: int
    end: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    start: int
    end: int
    text: str
    heredocs: tuple[Heredoc, ...] = ()


def tokenise(text: str) -> tuple[Token, ...]:
    """The tokens of a script, comments left out."""
    return tuple(_Tokeniser(text).run())


class _Tokeniser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Token] = []
        self.pending: list[tuple[str, bool, bool]] = []  # announced here-documents: delimiter, tabs stripped, quoted
        self.in_condition = False  # between [[ and ]], where < and && are no shell operators
        self.command_next = True

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _BLANKS:
                self.at += 1
            elif self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.text.index("\n", self.at) + 1
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n":
                self._newline()
            elif not (self.in_condition or self._operator()):
                self._redirection_or_word()
            elif self.in_condition:
                self._condition_word()
        return self.tokens

    def _add(self, kind: Kind, start: int, heredocs: tuple[Heredoc, ...] = ()) -> None:
        self.tokens.append(Token(kind, start, self.at, self.text[start : self.at], heredocs))

    def _newline(self) -> None:
        start = self.at
        self.at += 1
        bodies = tuple(self._heredoc(*announced) for announced in self.pending)
        self.pending = []
        self._add(Kind.NEWLINE, start, bodies)
        self.command_next = True

    def _heredoc(self, delimiter: str, tabs_stripped: bool, quoted: bool) -> Heredoc:
        start = self.at
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            line_end = len(self.text) if end < 0 else end
            line = self.text[self.at : line_end].rstrip("\r")
            body_end, self.at = self.at, min(line_end + 1, len(self.text))
            if (line.lstrip("\t") if tabs_stripped else line) == delimiter:
                return Heredoc(start, body_end, quoted)
        return Heredoc(start, len(self.text), quoted)

    def _operator(self) -> bool:
        start = self.at
        if self.command_next and self.text.startswith("((", start):
            return False  # arithmetic, a word of its own
        if _REDIRECTION.match(self.text, start):
            return False
        for operator in _OPERATORS:
            if self.text.startswith(operator, start):
                self.at += len(operator)
                self._add(Kind.OPERATOR, start)
                self.command_next = True
                return True
        return False

    def _redirection_or_word(self) -> None:
        start = self.at
        redirection = _REDIRECTION.match(self.text, start)
        if redirection:
            self.at = redirection.end()
            while self.at < len(self.text) and self.text[self.at] in _BLANKS:
                self.at += 1
            target = self.at
            self.at = self._word_end(self.at)
            sign = redirection.group().lstrip("0123456789")
            if sign in ("<<", "<<-"):
                raw = self.text[target : self.at]
                self.pending.append((re.sub(r"[\"'\\]", "", raw), sign == "<<-", raw != re.sub(r"[\"'\\]", "", raw)))
            self._add(Kind.REDIRECTION, start)
            return
        self.at = max(self._word_end(self.at), self.at + 1)
        self._add(Kind.WORD, start)
        word = self.text[start : self.at]
        self.in_condition = self.command_next and word == "[["
        self.command_next = self.command_next and (word in _OPENS_COMMAND or is_assignment(word))

    def _condition_word(self) -> None:
        start = self.at
        signed = self.text.startswith(("&&", "||"), start)
        self.at = start + 2 if signed else max(self._word_end(start), start + 1)
        self._add(Kind.WORD, start)
        if self.text[start : self.at] == "]]":
            self.in_condition = self.command_next = False

    # --- ends of things ---

    def _word_end(self, at: int) -> int:
        text = self.text
        if text.startswith("((", at):
            return self._closed(at + 1, "(", ")")
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 2
            elif char in "\"'`$":
                at = self._quoted_end(at)
            elif char == "(" and at and text[at - 1] in "=@?*+!<>":
                at = self._closed(at + 1, "(", ")")
            elif char in "<>" and text.startswith("(", at + 1):
                at += 1
            elif char in _ENDS_WORD:
                break
            else:
                at += 1
        return min(at, len(text))

    def _quoted_end(self, at: int) -> int:
        """Past the quotation or expansion that begins at `at`."""
        text = self.text
        if text.startswith("$'", at):
            return self._until(at + 2, "'")
        if text.startswith("$(", at):
            return self._closed(at + 2, "(", ")")
        if text.startswith("${", at):
            return self._closed(at + 2, "{", "}")
        if text[at] == "'":
            end = text.find("'", at + 1)
            return len(text) if end < 0 else end + 1
        if text[at] in '"`':
            return self._until(at + 1, text[at])
        return at + 1

    def _until(self, at: int, closer: str) -> int:
        """Past the next unescaped closer; inside double quotes, substitutions are passed whole."""
        text = self.text
        while at < len(text):
            if text[at] == "\\":
                at += 2
            elif text[at] == closer:
                return at + 1
            elif closer == '"' and text.startswith(("$(", "${", "`"), at):
                at = self._quoted_end(at)
            else:
                at += 1
        return len(text)

    def _closed(self, at: int, opener: str, closer: str) -> int:
        """Past the closer that belongs to an opener already passed."""
        text, depth = self.text, 1
        while at < len(text):
            if text[at] == "\\":
                at += 2
                continue
            if text[at] in "\"'`" or text.startswith(("$(", "${", "$'"), at):
                at = self._quoted_end(at)
                continue
            depth += (text[at] == opener) - (text[at] == closer)
            at += 1
            if depth == 0:
                return at
        return len(text)


def is_assignment(word: str) -> bool:
    """Whether a word at the start of a command sets a variable."""
    return re.match(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=", word) is not None
