"""Suites as the Python entry points load them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.api.environments import pin_environments
from harness.formats.suite import load_suite as load_from_disk
from harness.formats.suite import select
from harness.records.errors import ConfigError
from harness.records.suite import Suite


def load_suite(path_or_name: str | Path, tasks: Iterable[str] = ()) -> Suite:
    """A suite by path or bundled name, narrowed to task id globs. Raises TaskError, LoadErrors, ConfigError."""
    suite = pin_environments(load_from_disk(path_or_name))
    patterns = tuple(tasks)
    return select(suite, patterns) if patterns else suite


def require_locked(suite: Suite) -> None:
    """Raises ConfigError when an image is not pinned: tags never reach the engine."""
    if not suite.locked:
        pin_environments(suite, strict=True)  # says what keeps an environment from being opened
        raise ConfigError(
            "the suite is not locked, so its images are not pinned by digest",
            place=suite.source,
            remedy=f"run `assay suite lock {suite.source}`",
        )
