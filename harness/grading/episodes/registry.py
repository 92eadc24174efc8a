"""Finds a grader of episodes by `ID@VERSION`, `ID@VERSION+choice+choice`, or `path/to/file.py:name`."""

from __future__ import annotations

from harness import plugins
from harness.protocols import EpisodeGrader
from harness.records.errors import ConfigError

GROUP = "episode_graders"


def episode_grader(name: str) -> EpisodeGrader:
    """The grader of that name; a class in a file is called without arguments. Raises ConfigError."""
    plain, *choices = [name] if ".py:" in name else name.split("+")
    found = plugins.load(GROUP, plain)
    grader: EpisodeGrader = found() if isinstance(found, type) else found
    if not choices:
        return grader
    variant = getattr(grader, "variant", None)
    if variant is None:
        raise ConfigError(f"{plain} has no variants", place=name, remedy=f"ask for {plain}")
    varied: EpisodeGrader = variant(choices)
    return varied


def named(grader: EpisodeGrader) -> str:
    """`id@version`, as grades name it."""
    return f"{grader.id}@{grader.version}"


def names() -> tuple[str, ...]:
    """The graders known by name."""
    return plugins.names(GROUP)
