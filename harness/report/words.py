"""Text of others (a solver's, a model's, a container's) made fit for a terminal and for a line."""

from __future__ import annotations

import re

# Everything that could steer a terminal, or hide what is written, but tabs and line feeds.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with control characters and lone surrogates written out (`\\x1b`), tabs and line feeds kept."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def first_line(text: str) -> str:
    """The first line of `text` that is not blank, printable; "" when there is none."""
    lines = (printable(line).strip() for line in text.splitlines())
    return next((line for line in lines if line), "")


def counted(number: int, what: str, many: str = "") -> str:
    """`1 episode`, `2 episodes`: a count and the noun that it is of; `many` where the plural is no added s."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def one_line(text: str) -> str:
    """`text` on one line, printable, runs of blanks as one."""
    return printable(" ".join(text.split()))
