"""An agent for audit tests: it passes the tasks that it is told to pass."""

from __future__ import annotations

from harness.protocols import Episode


class Counting:
    """Solves a task whose instruction ends with a number below the option `below`, but none that is in `but`."""

    name = "counting"
    isolation = "inline"

    async def run(self, episode: Episode) -> None:
        number = int(episode.instruction.split()[-1])
        if number < int(episode.options["below"]) and str(number) not in str(episode.options.get("but", "")).split():
            await episode.sandbox.exec("echo 42 > /app/answer")
        if "leave" in episode.options:
            await episode.sandbox.exec(f"echo 1 > {episode.options['leave']}")
