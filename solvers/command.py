"""Any command-line agent that is installed in the task's image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.protocols import Episode
from harness.records.errors import ConfigError
from harness.records.task import FileTree, TreeFile

INSTRUCTION_FOLDER = "/tmp/assay"


class Command:
    """Runs `options["command"]`, a shell line, with the instruction in $ASSAY_INSTRUCTION_FILE.

    `assay run --solver command --solver-option command='my-agent --task "$ASSAY_INSTRUCTION_FILE"'`
    """

    name = "command"
    version = "1"
    isolation = "inline"
    metered = False

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Raises ConfigError for options that cannot be used."""
        unknown = sorted(set(options) - {"command"})
        if unknown:
            raise ConfigError(f"the command solver has no option {unknown[0]!r}", remedy="its option is command=LINE")
        _line(options)

    async def run(self, episode: Episode) -> None:
        line = _line(episode.options)
        content = episode.instruction.encode("utf-8", "surrogateescape")
        tree = FileTree(files=(TreeFile(path="instruction.md", content=content),))
        await episode.sandbox.put(tree, INSTRUCTION_FOLDER)
        env = {"ASSAY_INSTRUCTION_FILE": f"{INSTRUCTION_FOLDER}/instruction.md"}
        await episode.sandbox.exec(line, env=env, timeout_s=episode.remaining().wall_s)


def _line(options: Mapping[str, Any]) -> str:
    line = options.get("command")
    if not isinstance(line, str) or not line.strip():
        raise ConfigError("the command solver has no command", remedy="give --solver-option command='my-agent …'")
    if "\0" in line:
        raise ConfigError("it holds a NUL character, which no command line can", place="solver_options.command")
    return line
