"""The native format: Harbor's task directory, which is Terminal-Bench 2's too."""

from __future__ import annotations

from pathlib import Path

from harness.formats.build import Identity, build_task
from harness.formats.parse import TASK_TOML
from harness.formats.places import Where
from harness.formats.source import FolderSource
from harness.records.task import Task

VARIANTS = "variants.toml"


class HarborFormat:
    """One folder with a `task.toml` is one task; the folder's name is its id."""

    name = "harbor"

    def recognises(self, folder: Path) -> bool:
        return (folder / TASK_TOML).is_file() and not (folder / VARIANTS).is_file()

    def load(self, folder: Path) -> tuple[Task, ...]:
        """The folder's one task. Raises TaskError, or LoadErrors with everything that is wrong with it."""
        name = folder.resolve().name
        source = FolderSource(folder, Where(str(folder)))
        identity = Identity(id=name, family=name, build_context=str((folder / "environment").resolve()))
        return (build_task(identity, source),)
