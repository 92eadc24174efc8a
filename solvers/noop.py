"""The null solver: does nothing. A task that passes with it measures nothing."""

from __future__ import annotations

from harness.protocols import Episode


class Noop:
    """Returns at once."""

    name = "noop"
    version = "1"
    isolation = "inline"

    async def run(self, episode: Episode) -> None:
        return
