"""Thaws a container past the engine, through its control group on this machine.

An engine that was starting a command when the container froze waits for that command, holding the container's lock: it
answers neither an unpausing nor a removal any more. The kernel thaws it all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CONTROL_ROOT = Path("/sys/fs/cgroup")
_CONTROLS = (("freezer.state", "THAWED"), ("cgroup.freeze", "0"))  # cgroup v1, v2


def thaw_past_engine(container_id: str, root: Path = CONTROL_ROOT) -> bool:
    """Let a container's processes run; whether its control group is here and may be written. Harmless if it runs."""
    thawed = False
    for folder in _groups_of(container_id, root):
        for file, running in _CONTROLS:
            try:
                (folder / file).write_text(running)
            except OSError:  # of another version, another user's, or gone meanwhile
                continue
            thawed = True
    return thawed


def _groups_of(container_id: str, root: Path) -> Iterator[Path]:
    """Control groups are folders named after the container: `<id>`, or `docker-<id>.scope` under systemd."""
    unified = (root / "cgroup.controllers").exists()
    for folder, names, _ in os.walk(root if unified else root / "freezer"):
        for name in [name for name in names if container_id in name]:
            names.remove(name)  # what is below it froze with it
            yield Path(folder) / name
