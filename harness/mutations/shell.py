"""Mutation operators on shell scripts.

Never touched: the shebang, comments, `set` and its kin, and commands whose only effect is a line on the terminal:
a mutant that differs there is no mutant. Here-documents are text: numbers, words and comparisons in them may change,
or, where they are diffs, what :mod:`harness.mutations.diff` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.mutations.diff import diff_edits, looks_like_diff
from harness.mutations.edits import Edit, Operator, Replacement, distinct, line_of
from harness.mutations.literals import changed_string, comparison_edits, literal_edits, number_edits
from harness.mutations.shell_tokens import Heredoc, Kind, Token, is_assignment, tokenise

_CONDITIONS = frozenset({"if", "elif", "while", "until"})
_BEFORE_COMMAND = frozenset({*_CONDITIONS, "then", "else", "do", "!", "time"})
_STRUCTURE = frozenset(
    {*_CONDITIONS, "then", "else", "fi", "do", "done", "for", "case", "esac", "select", "function", "{", "}", "in"}
)
# Without effect on what is graded, or with none but on how the script runs.
_IDLE = frozenset({"set", "shopt", ":", "true", "cd", "exit", "sleep", "wait", "trap", "return", "break", "continue"})
_TALK = frozenset({"echo", "printf", "ls", "cat", "head", "tail", "wc", "stat", "file", "pwd", "date", "ps"})
_CONTINUES = frozenset({"|", "|&", "||", "&&"})
_TEST_OPPOSITE = {
    "-eq": "-ne", "-ne": "-eq", "-lt": "-ge", "-ge": "-lt", "-gt": "-le", "-le": "-gt",
    "-z": "-n", "-n": "-z", "=": "!=", "==": "!=", "!=": "=",
}  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z][\w.,:%+-]*")
_LETTERS = re.compile(r"-[A-Za-z]{2,4}")


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words from the command's name on, and its redirections."""

    words: tuple[Token, ...]
    redirections: tuple[Token, ...]
    led: bool = False  # by a word of the shell's grammar, like `while`

    @property
    def name(self) -> str:
        return self.words[0].text if self.words else ""


@dataclass(frozen=True, slots=True)
class Statement:
    """The tokens of one logical line, and its end with the here-documents that belong to it."""

    tokens: tuple[Token, ...]
    heredocs: tuple[Heredoc, ...]
    end: int

    @property
    def start(self) -> int:
        return self.tokens[0].start


def shell_edits(text: str) -> tuple[Edit, ...]:
    """All single mutations of a script, in order of place."""
    edits: list[Edit] = []
    for statement in _statements(tokenise(text)):
        edits += _of_statement(text, statement)
        for heredoc in statement.heredocs:
            edits += _of_heredoc(text, heredoc)
    return distinct(edits, text)


def _statements(tokens: Sequence[Token]) -> Iterator[Statement]:
    part: list[Token] = []
    heredocs: list[Heredoc] = []
    for token in tokens:
        if token.kind is not Kind.NEWLINE:
            part.append(token)
            continue
        heredocs += token.heredocs
        if part and part[-1].text in _CONTINUES and part[-1].kind is Kind.OPERATOR:
            continue
        if part:
            yield Statement(tuple(part), tuple(heredocs), token.end if heredocs else token.start)
        part, heredocs = [], []
    if part:
        yield Statement(tuple(part), tuple(heredocs), part[-1].end)


def _of_statement(text: str, statement: Statement) -> Iterator[Edit]:
    pipelines = _pipelines(statement.tokens)
    commands = [command for pipeline in pipelines for command in pipeline]
    if commands and all(command.name in _IDLE for command in commands):
        return
    if _only_talks(pipelines):
        return
    if _droppable(statement, commands):
        yield _drop(text, statement)
    yield from _negations(text, statement.tokens)
    for pipeline in pipelines:
        if _only_talks([pipeline]):
            continue
        yield from _dropped_stages(text, pipeline)
        for command in pipeline:
            if command.name not in _IDLE:
                yield from _of_command(text, command)


def _pipelines(tokens: Sequence[Token]) -> list[list[Command]]:
    pipelines: list[list[Command]] = [[]]
    words: list[Token] = []
    redirections: list[Token] = []

    led = False

    def close() -> None:
        if words or redirections:
            pipelines[-1].append(Command(tuple(words), tuple(redirections), led))
        words.clear()
        redirections.clear()

    for token in tokens:
        if token.kind is Kind.OPERATOR:
            close()
            led = False
            if token.text not in ("|", "|&"):
                pipelines.append([])
        elif token.kind is Kind.REDIRECTION:
            redirections.append(token)
        elif words or not (token.text in _BEFORE_COMMAND or is_assignment(token.text)):
            words.append(token)
        elif token.text in _BEFORE_COMMAND:
            led = True
    close()
    return [pipeline for pipeline in pipelines if pipeline]


def _only_talks(pipelines: Sequence[Sequence[Command]]) -> bool:
    """Whether nothing is left of these commands but lines on the terminal."""
    commands = [command for pipeline in pipelines for command in pipeline]
    return bool(commands) and all(
        command.name in _TALK and not command.led and not any(_writes(token) for token in command.redirections)
        for command in commands
    )


def _writes(redirection: Token) -> bool:
    sign = redirection.text.lstrip("0123456789")
    return sign.startswith((">", "&>")) and not sign.startswith(">&") and "/dev/null" not in sign


def _droppable(statement: Statement, commands: Sequence[Command]) -> bool:
    depth = 0
    for token in statement.tokens:
        if token.kind is Kind.OPERATOR:
            depth += (token.text == "(") - (token.text == ")")
            if depth < 0 or token.text.startswith(";;") or token.text == ";&":
                return False
    # A group or a function spans lines; what is dropped here must be whole.
    return (
        depth == 0
        and bool(commands)
        and not any(command.name in _STRUCTURE for command in commands)
        and not any(
            token.kind is Kind.WORD and token.text in _STRUCTURE - {"in"} and _at_command(statement.tokens, place)
            for place, token in enumerate(statement.tokens)
        )
    )


def _at_command(tokens: Sequence[Token], place: int) -> bool:
    """Whether the token at `place` stands where a command begins."""
    if place == 0:
        return True
    before = tokens[place - 1]
    return before.kind is Kind.OPERATOR or before.text in _BEFORE_COMMAND


def _drop(text: str, statement: Statement) -> Edit:
    # A colon, so that a branch or a loop which held nothing else is still well formed.
    new = ":\n" if statement.heredocs else ":"
    detail = _shown(text[statement.start : statement.tokens[-1].end])
    part = Replacement(statement.start, statement.end, new)
    return Edit(Operator.DROP_COMMAND, line_of(text, statement.start), detail, (part,))


def _shown(code: str) -> str:
    """Code on one short line, for a mutant's name."""
    line = " ".join(code.split())
    return line if len(line) <= 40 else f"{line[:37]}..."


def _negations(text: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        line = line_of(text, token.start)
        if token.kind is Kind.OPERATOR and token.text in ("&&", "||"):
            new = "||" if token.text == "&&" else "&&"
            yield Edit(
                Operator.NEGATE, line, f"{token.text} becomes {new}", (Replacement(token.start, token.end, new),)
            )
        elif token.text in _CONDITIONS and token.kind is Kind.WORD and following and _at_command(tokens, place):
            if following.text == "!":
                after = tokens[place + 2].start if place + 2 < len(tokens) else following.end
                part = Replacement(following.start, after, "")
            else:
                part = Replacement(following.start, following.start, "! ")
            yield Edit(Operator.NEGATE, line, f"the condition of {token.text}", (part,))


def _dropped_stages(text: str, pipeline: Sequence[Command]) -> Iterator[Edit]:
    """Leave out one command of a pipeline but the first; where it writes, the one before it writes instead."""
    for before, stage in pairwise(pipeline):
        earlier = [*before.words, *before.redirections]
        if not stage.words or not earlier or stage.led or stage.name in _STRUCTURE:
            continue
        start, end = max(token.end for token in earlier), stage.words[-1].end
        if all(token.start > start for token in stage.words) and all(token.start > end for token in stage.redirections):
            line = line_of(text, stage.words[0].start)
            yield Edit(Operator.DROP_STAGE, line, f"| {_shown(stage.name)}", (Replacement(start, end, ""),))


def _of_command(text: str, command: Command) -> Iterator[Edit]:
    if command.name in ("[", "[[", "test"):
        yield from _of_test(text, command)
        return
    if command.name.startswith("(("):
        yield from _shifted(literal_edits(command.name), text, command.words[0].start)
        return
    if command.name in _STRUCTURE:
        return
    yield from _redirections(text, command)
    for token in command.words[1:]:
        yield from _of_argument(text, token)


def _of_test(text: str, command: Command) -> Iterator[Edit]:
    for token in command.words[1:]:
        new = _TEST_OPPOSITE.get(token.text)
        if new is not None:
            part = Replacement(token.start, token.end, new)
            yield Edit(Operator.COMPARISON, line_of(text, token.start), f"{token.text} becomes {new}", (part,))
        else:
            yield from _shifted(number_edits(token.text), text, token.start)


def _redirections(text: str, command: Command) -> Iterator[Edit]:
    for token in command.redirections:
        sign = token.text.lstrip("0123456789")
        if sign.startswith(">>") and "/dev/null" not in sign:
            start = token.end - len(sign)
            part = Replacement(start, start + 2, ">")
            yield Edit(Operator.REDIRECTION, line_of(text, start), ">> becomes >", (part,))


def _of_argument(text: str, token: Token) -> Iterator[Edit]:
    word, line = token.text, line_of(text, token.start)
    if word in ("}", "{", "]", "\\;", "--", "-"):
        return
    dropped = Replacement(_blank_before(text, token.start), token.end, "")
    if word.startswith("-") and len(word) > 1:
        yield Edit(Operator.DROP_FLAG, line, _shown(word), (dropped,))
        if _LETTERS.fullmatch(word):
            for place in range(1, len(word)):
                at = token.start + place
                yield Edit(Operator.DROP_FLAG, line, f"{word[place]} of {word}", (Replacement(at, at + 1, ""),))
    else:
        yield Edit(Operator.DROP_ARGUMENT, line, _shown(word), (dropped,))
    yield from _literals_of(text, token)


def _blank_before(text: str, start: int) -> int:
    while start and text[start - 1] in " \t":
        start -= 1
    return start


def _literals_of(text: str, token: Token) -> Iterator[Edit]:
    word = token.text
    quote = word[:1]
    if quote in "\"'" and len(word) >= 2 and word[-1] == quote and quote not in word[1:-1]:
        inside = word[1:-1]
        if quote == '"' and re.search(r"[$`\\]", inside):
            yield from _shifted(comparison_edits(inside) if "<" not in inside else (), text, token.start + 1)
            return
        found = list(literal_edits(inside, fields=quote == "'"))
        yield from _shifted(found, text, token.start + 1)
        if not found and _PLAIN.match(inside):
            yield changed_string(text, token.start + 1, token.end - 1)
    elif not re.search(r"[$`\\\"'*?(){}\[\]~!/]", word):
        found = list(number_edits(word))
        yield from _shifted(found, text, token.start)
        if not found and _PLAIN.fullmatch(word):
            yield changed_string(text, token.start, token.end)


def _of_heredoc(text: str, heredoc: Heredoc) -> Iterator[Edit]:
    body = text[heredoc.start : heredoc.end]
    edits = diff_edits(body) if looks_like_diff(body) else literal_edits(body, fields=heredoc.quoted)
    yield from _shifted(edits, text, heredoc.start)


def _shifted(edits: Iterator[Edit] | Sequence[Edit], text: str, offset: int) -> Iterator[Edit]:
    lines = line_of(text, offset) - 1
    for edit in edits:
        yield edit.shifted(offset, lines)
