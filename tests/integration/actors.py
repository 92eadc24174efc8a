"""Solvers for end-to-end tests, named on the command line as `path/to/actors.py:Obedient`.

The instruction is the script: every line is a command for the sandbox, except

    @chat             ask the model
    @gate             wait until the file named by the option `gate` exists
    @within N LINE    run LINE with a time limit of N seconds
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from harness.protocols import Episode


class Obedient:
    """Does what the instruction says, line by line."""

    name = "obedient"
    needs_model: ClassVar[bool] = False

    async def run(self, episode: Episode) -> None:
        for line in episode.instruction.splitlines():
            word, _, rest = line.partition(" ")
            if word == "@gate":
                while not Path(episode.options["gate"]).exists():  # noqa: ASYNC110, ASYNC240  # another process opens it
                    await asyncio.sleep(0.05)
            elif word == "@chat":
                if episode.model is not None:
                    await episode.model.chat([{"role": "user", "content": episode.instruction}])
            elif word == "@within":
                seconds, _, command = rest.partition(" ")
                await episode.sandbox.exec(command, timeout_s=float(seconds))
            elif line.strip():
                await episode.sandbox.exec(line)


class Talkative(Obedient):
    """The same, with a model to talk to."""

    name = "talkative"
    needs_model: ClassVar[bool] = True


class Crashing(Obedient):
    """The same, and then its own code fails."""

    name = "crashing"

    async def run(self, episode: Episode) -> None:
        await super().run(episode)
        raise RuntimeError("out of ideas")
