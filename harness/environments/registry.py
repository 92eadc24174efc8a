"""Finds an environment by `NAME@VERSION` or `path/to/file.py:name`, and the folder that its data is in.

A plug-in (group `assay.environments`) is called with the data folder, or None where the user names none, and returns
an :class:`harness.protocols.Environment`.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness import plugins
from harness.environments.folder import VARIABLE
from harness.protocols import Environment

_CARRIERS = ", command:COMMAND of any program, or container:IMAGE@sha256:… (docs/environments.md)"


def environment(name: str, data_folder: Path | None = None) -> Environment:
    """The environment of that name, over the data in `data_folder` or else in the folder ASSAY_ENVIRONMENT_DATA names.

    Raises ConfigError for an unknown name, EnvironmentFault when its data is not there.
    """
    factory = plugins.load("environments", name, _CARRIERS)
    found: Environment = factory(data_folder if data_folder is not None else _from_variable())
    return found


def names() -> tuple[str, ...]:
    """The environments known by name."""
    return plugins.names("environments")


def _from_variable() -> Path | None:
    text = os.environ.get(VARIABLE)
    return Path(text) if text else None
