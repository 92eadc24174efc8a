"""Reading archives in tests, and small ones to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.records.archive import ArchiveEpisode, ArchiveRun, Finding, ImportOptions

DATA = Path(__file__).parent / "data"


class Read:
    """All that an importer gives, by kind."""

    def __init__(self, path: Path, options: ImportOptions | None = None, format: str | None = None) -> None:
        self.archive = Archive(path)
        importer, self.recognition = choose(self.archive, format)
        items = list(importer.read(self.archive, options or ImportOptions()))
        self.runs = [item for item in items if isinstance(item, ArchiveRun)]
        self.episodes = [item for item in items if isinstance(item, ArchiveEpisode)]
        self.findings = [item for item in items if isinstance(item, Finding)]

    def outcomes(self) -> list[str]:
        return sorted(episode.outcome.value for episode in self.episodes)

    def episode(self, task: str, repeat: int = 0) -> ArchiveEpisode:
        return next(e for e in self.episodes if e.task.id == task and e.repeat == repeat)


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def tau_episode(task: int = 0, trial: int = 0, reward: Any = 1.0, **info: Any) -> dict[str, Any]:
    """A tau-bench episode in which the agent answers once."""
    asked = {"user_id": "u", "instruction": "Ask.", "actions": [], "outputs": []}
    told = {"task": asked, "source": "user", "user_cost": 0.001, "reward_info": {"reward": reward}} | info
    traj = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": f"Good day {task}.{trial}"},
        {"role": "user", "content": "###STOP###"},
    ]
    return {"task_id": task, "trial": trial, "reward": reward, "info": told, "traj": traj}
