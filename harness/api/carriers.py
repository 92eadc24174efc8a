"""Environments by any name a user may write: registered, in a file, a command of this machine, or a container.

airline@v1 · path/to/file.py:Name · command:python3 counter.py · container:IMAGE@sha256:… [command]
"""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path

from harness.environments import registry
from harness.environments.channel import ProcessChannel
from harness.environments.folder import VARIABLE
from harness.environments.remote import RemoteEnvironment
from harness.protocols import Environment
from harness.records.errors import ConfigError

COMMAND, CONTAINER = "command:", "container:"


def environment(name: str, data_folder: Path | None = None) -> Environment:
    """The environment of that name. A command finds the data folder in the variable ASSAY_ENVIRONMENT_DATA, a
    container has its data inside.

    Nothing is started before its capabilities are asked for. Raises ConfigError, EnvironmentFault.
    """
    if name.startswith(COMMAND):
        command = _words(name, COMMAND)
        env = {VARIABLE: str(data_folder)} if data_folder is not None else {}
        return RemoteEnvironment(lambda: ProcessChannel(command, env=env))
    if name.startswith(CONTAINER):
        image, *command = _words(name, CONTAINER)
        # Imported when it is asked for: an engine is a third of the time that everything else takes to load.
        made: Environment = importlib.import_module("harness.api.contained").contained(image, command)
        return made
    return registry.environment(name, data_folder)


def _words(name: str, prefix: str) -> list[str]:
    try:
        words = shlex.split(name.removeprefix(prefix))
    except ValueError as error:
        raise ConfigError(f"cannot be taken apart: {error}", place=name, remedy="close the quotes") from error
    if not words:
        raise ConfigError("names nothing to run", place=name, remedy=f"write {prefix} and what to run")
    return words
