"""Commands that no Linux can run: refused here, with what is wrong, and never put to the engine.

Asked for a command of some megabytes, runc waits for ever, and with it every later question about the container.
"""

from __future__ import annotations

from harness.records.execution import Captured, Command, ExecResult

LONGEST_ARGUMENT_BYTES = 131_071  # MAX_ARG_STRLEN without its NUL
MOST_BYTES = 1_500_000  # of arguments and environment with their pointers; the kernel's own bound is 2 MiB
_POINTER_AND_NUL_BYTES = 9
CANNOT_RUN = 126  # what a shell says of a command that is there and cannot be run


def refusal(command: Command) -> ExecResult | None:
    """How a command ends that cannot be started whatever the image holds; None for all others."""
    problem = _problem(command)
    if problem is None:
        return None
    words = f"the command cannot be started: {problem}\n".encode()
    return ExecResult(exit_code=CANNOT_RUN, stderr=Captured(head=words, seen_bytes=len(words)))


def _problem(command: Command) -> str | None:
    strings = [*command.argv, *(f"{name}={value}" for name, value in command.env.items())]
    if any("\0" in string for string in strings):
        return "it holds a NUL byte, which no argument and no variable can"
    if any("=" in name or not name for name in command.env):
        return "a variable's name is empty or holds '='"
    sizes = [len(string.encode("utf-8", "surrogatepass")) for string in strings]
    advice = "put it into a file, or give it as input"
    if max(sizes) > LONGEST_ARGUMENT_BYTES:
        return f"an argument has {max(sizes)} bytes, and Linux takes {LONGEST_ARGUMENT_BYTES}: {advice}"
    total = sum(sizes) + _POINTER_AND_NUL_BYTES * len(sizes)
    return f"it has {total} bytes, and at most {MOST_BYTES} are taken: {advice}" if total > MOST_BYTES else None
