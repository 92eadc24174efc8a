"""The null solver: does nothing. A task that passes with it measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.protocols import Episode
from harness.records.errors import ConfigError


class Noop:
    """Returns at once."""

    name = "noop"
    version = "1"
    isolation = "inline"
    converses = True

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Raises ConfigError: there are none."""
        if options:
            raise ConfigError(f"the noop solver has no option {next(iter(options))!r}; it takes none")

    async def run(self, episode: Episode) -> None:
        return
