"""Environments, users and graders of conversations, and what pins an environment as a digest pins an image."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from harness import plugins
from harness.api.carriers import environment
from harness.formats.conversation import ENVIRONMENT
from harness.protocols import Environment, EpisodeGrader, SimulatedUser
from harness.records.conversation import Conversation, UserScript
from harness.records.environment import EnvironmentFault
from harness.records.errors import ConfigError
from harness.records.suite import ImageLock, Suite
from harness.records.task import ImagePin, Task
from harness.runner.conversing import close_with, environment_digest
from harness.simulation.user import ScriptedUser

PLATFORM = "environment"


def environment_of(conversation: Conversation) -> Environment:
    """The environment a conversation happens in, to be closed where it can be. Raises ConfigError, EnvironmentFault."""
    return environment(conversation.environment, Path(conversation.folder) if conversation.folder else None)


def user_of(script: UserScript, seed: int) -> SimulatedUser:
    """The simulated user of a script."""
    return ScriptedUser(script, seed)


def episode_graders(suite: Suite) -> dict[str, EpisodeGrader]:
    """The graders of a suite's conversations, by `id@version`. Raises ConfigError."""
    wanted = sorted({task.grading.grader for task in suite.tasks if task.conversation is not None})
    found: dict[str, EpisodeGrader] = {}
    for reference in wanted:
        plugin = plugins.load("episode_graders", reference)
        found[reference] = plugin() if isinstance(plugin, type) else plugin
    return found


def needs_containers(suite: Suite) -> bool:
    """Whether any task of the suite happens in a container."""
    return any(task.conversation is None for task in suite.tasks)


def environment_pin(conversation: Conversation) -> str:
    """The digest of what a conversation happens in: the environment's code, and the state it begins in without a
    task's own initial state. Raises ConfigError, EnvironmentFault."""
    made = environment_of(conversation)
    with ExitStack() as stack:
        close_with(stack, made)
        return environment_digest(made, conversation.mode, conversation.data)


def pin_environments(suite: Suite, *, strict: bool = False) -> Suite:
    """The suite with every conversation pinned to its environment as it is here.

    Where a lock pins it to another one, that is a ConfigError; where the environment cannot be opened here, the pin
    stays open, or with `strict` that is raised (EnvironmentFault).
    """
    pins: dict[tuple[str, str], str | None] = {}
    tasks = tuple(_pinned(task, pins, strict=strict) for task in suite.tasks)
    locked = all(task.image.digest is not None for task in tasks)
    return suite.model_copy(update={"tasks": tasks, "locked": locked})


def environment_locks(suite: Suite) -> dict[str, ImageLock]:
    """What `suite.lock` has of environments, by reference. Raises ConfigError, EnvironmentFault."""
    pinned = pin_environments(suite, strict=True)
    return {
        task.image.reference: ImageLock(digest=task.image.digest, platform=PLATFORM)
        for task in pinned.tasks
        if task.conversation is not None and task.image.digest is not None
    }


def _pinned(task: Task, pins: dict[tuple[str, str], str | None], *, strict: bool) -> Task:
    conversation = task.conversation
    if conversation is None:
        return task
    key = (task.image.reference, conversation.mode)
    if key not in pins:
        try:
            pins[key] = environment_pin(conversation)
        except EnvironmentFault:
            if strict:
                raise
            pins[key] = None
    digest = pins[key]
    if task.image.digest is not None and digest not in (None, task.image.digest):
        raise ConfigError(
            f"{task.image.reference.removeprefix(ENVIRONMENT)} is not the environment that was locked",
            place=task.source,
            remedy="if that is meant, run `assay suite lock` again",
        )
    if digest is None:
        return task
    pin = ImagePin(reference=task.image.reference, digest=digest, platform=PLATFORM)
    return task.model_copy(update={"image": pin})
