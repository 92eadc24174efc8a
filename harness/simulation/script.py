"""What a simulated agent says next, from the conversation so far: pure, and the same whoever asks, whenever.

A plan is a list of command lines, one per turn. The turn is the number of assistant messages since the task was
given, so a request that is asked again is answered alike, and the service keeps no state.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from harness.mutations.declared import apply_mutation
from harness.records.errors import ConfigError
from harness.records.task import Solution, Task, TreeFile
from harness.simulation.population import Behaviour, SimulatedPopulation

T = TypeVar("T")
CHUNK_BYTES = 48_000  # of a file per command: a single argument of a command is limited to 128 KiB
LINES_AT_ONCE = 14  # a longer script is written in two goes
RUN_TIMEOUT_S = 3600  # what the agent asks for; the harness clamps it
WANDERS_AT_MOST = 80  # turns, where no budget stops it before
_LOOKS = (
    "ls -la",
    "pwd; ls -la; id",
    "ls -la . ..",
)
_READS = (
    "find . -maxdepth 2 -type f -size -64k -not -path './.git/*' | sort | head -n 3"
    ' | while read -r name; do echo "== $name"; head -c 300 -- "$name"; echo; done',
    "find . -maxdepth 3 -not -path './.git/*' | sort | head -n 40",
    "find . -maxdepth 2 -type f -size -64k -not -path './.git/*' | sort | head -n 2"
    ' | while read -r name; do echo "== $name"; head -n 5 -- "$name" | cut -c 1-200; done',
)
_WANDERS = (
    *_LOOKS,
    *_READS,
    "df -h .",
    "uname -a",
    "date",
    "env | sort | head -n 12",
    "du -s .",
)
_SAYS = ("Let me look around first.", "Now the files themselves.", "I write this down as a script.", "The rest of it.")


@dataclass(frozen=True)
class Turn:
    """What the agent says and, unless it is done, the command line that it wants run."""

    text: str
    command: str | None = None
    timeout_s: int | None = None


class Recogniser:
    """Finds the task that a conversation is about by its instruction, which some message holds word for word."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Raises ConfigError when two tasks have the same instruction: they could not be told apart."""
        self._exact: dict[str, Task] = {}
        for task in tasks:
            text = _flat(task.instruction)
            if not text:
                raise ConfigError(f"task {task.id!r} has no instruction", remedy="a simulated model needs one")
            if text in self._exact:
                raise ConfigError(
                    f"tasks {self._exact[text].id!r} and {task.id!r} have the same instruction",
                    remedy="a simulated model tells tasks apart by it; word them differently",
                )
            self._exact[text] = task
        self._longest_first = sorted(self._exact, key=len, reverse=True)
        self.find = lru_cache(maxsize=2048)(self._find)  # asked at every turn of a conversation

    def _find(self, text: str) -> Task | None:
        """The task whose instruction stands in the text, white space aside; the longest of several."""
        flat = _flat(text)
        found = next((instruction for instruction in self._longest_first if instruction in flat), None)
        return self._exact[found] if found is not None else None

    def locate(self, messages: Sequence[Mapping[str, Any]]) -> tuple[Task, int] | None:
        """The task of a conversation, and the number of the message that gives it."""
        for number, message in enumerate(messages):
            if message.get("role") in ("user", "system", "developer"):
                task = self.find(text_of(message))
                if task is not None:
                    return task, number
        return None


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text: its content, or the text parts of it."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


class Script:
    """Every agent's plan for every task of a population."""

    def __init__(self, population: SimulatedPopulation, tasks: Sequence[Task]) -> None:
        self.population = population
        self.tasks = {task.id: task for task in tasks}
        self.recogniser = Recogniser(tasks)
        self.plan = lru_cache(maxsize=2048)(self._plan)

    def next_turn(self, agent: str, task: Task, turn: int) -> Turn:
        """What the agent says at its `turn`-th reply, counted from 0."""
        plan = self.plan(agent, task.id)
        return plan[min(turn, len(plan) - 1)]

    def _plan(self, agent: str, task_id: str) -> tuple[Turn, ...]:
        task = self.tasks[task_id]
        behaviour = self.population.behaviour(agent, task.id)
        if behaviour is Behaviour.WANDER:
            return self._wander(agent, task)
        opening = (
            Turn(_SAYS[0], self._one_of(_LOOKS, agent, task, "look")),
            Turn(_SAYS[1], self._one_of(_READS, agent, task, "read")),
        )
        solution = task.solution if behaviour is Behaviour.REFERENCE else self._wrong(agent, task)
        if solution is None or not solution.files:
            return (*opening, Turn("All is as it should be; there is nothing left to do."))
        return (*opening, *carried_out(solution, folder_for(agent, task)), Turn("That is done."))

    def _wrong(self, agent: str, task: Task) -> Solution | None:
        """A declared wrong solution; None, which is to do nothing, where none is declared."""
        if not task.mutations:
            return None
        return apply_mutation(task.solution, self._one_of(task.mutations, agent, task, "mutation"))

    def _wander(self, agent: str, task: Task) -> tuple[Turn, ...]:
        turns = (
            Turn("I am not sure yet; let me see.", self._one_of(_WANDERS, agent, task, f"wander {number}"))
            for number in range(WANDERS_AT_MOST)
        )
        return (*turns, Turn("I do not know how to do this."))

    def _one_of(self, choices: Sequence[T], agent: str, task: Task, purpose: str) -> T:
        return choices[int(self.population.chance(purpose, agent, task.id) * len(choices))]


def carried_out(solution: Solution, folder: str) -> tuple[Turn, ...]:
    """The turns that write a solution into `folder`, run its script there, and remove the folder again."""
    if any(b"/solution" in file.content for file in solution.files.files):
        folder = "/solution"  # it names its own place
    lines: list[str] = []
    for file in solution.files.files:
        lines += written(file, folder, split=file.path == solution.script)
    pairs = [shlex.quote(f"{key}={value}") for key, value in sorted(solution.env.items())]
    env = f"env {' '.join(pairs)} " if pairs else ""
    script = shlex.quote(f"{folder}/{solution.script}")
    run = f"{env}bash {script}; code=$?; rm -rf {shlex.quote(folder)}; exit $code"
    turns = [Turn(_SAYS[2 + (number > 0)], line) for number, line in enumerate(lines)]
    return (*turns, Turn("Now I run it.", run, RUN_TIMEOUT_S))


def folder_for(agent: str, task: Task) -> str:
    """Where an agent puts its script while it needs it."""
    return "/tmp/work-" + hashlib.sha256(f"{agent}\0{task.id}".encode()).hexdigest()[:8]


def written(file: TreeFile, folder: str, *, split: bool) -> list[str]:
    """Command lines that write a file byte for byte; the longer ones in more than one go."""
    path = f"{folder}/{file.path}"
    target = shlex.quote(path)
    pieces = _pieces(file.content, split=split)
    lines = [_piece(piece, target, ">" if number == 0 else ">>") for number, piece in enumerate(pieces)]
    lines[0] = f"mkdir -p {shlex.quote(path.rpartition('/')[0])}\n{lines[0]}"
    if file.mode != 0o644:
        lines[-1] += f"chmod {file.mode:o} {target}\n"
    return lines


def _pieces(content: bytes, *, split: bool) -> list[bytes]:
    rows = content.splitlines(keepends=True) if _is_text(content) else []
    if not rows or len(content) > CHUNK_BYTES:
        return [content[at : at + CHUNK_BYTES] for at in range(0, max(len(content), 1), CHUNK_BYTES)]
    if not split or len(rows) <= LINES_AT_ONCE:
        return [content]
    half = len(rows) // 2
    return [b"".join(rows[:half]), b"".join(rows[half:])]


def _piece(piece: bytes, target: str, redirect: str) -> str:
    """One go: as a here-document where that holds the bytes exactly, else as base64."""
    if _is_text(piece) and piece.endswith(b"\n"):
        text = piece.decode()
        end = _delimiter(text)
        return f"cat {redirect} {target} <<'{end}'\n{text}{end}\n"
    encoded = base64.encodebytes(piece).decode()
    return f"base64 -d {redirect} {target} <<'EOF'\n{encoded}EOF\n"


def _delimiter(text: str) -> str:
    rows = set(text.split("\n"))
    number = 0
    while (end := f"EOF{number or ''}") in rows:
        number += 1
    return end


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
