"""What can be wrong between the keys and files of a task when each by itself is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.formats.places import near_match
from harness.formats.schema import MutationTable, TaskToml
from harness.formats.toml_lines import KeyPath
from harness.records.task import FileTree

DOCKERFILE = "environment/Dockerfile"
COMPOSE = "environment/docker-compose.yaml"
_MB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of the settings at a key."""

    message: str
    key: KeyPath
    remedy: str = ""


def machine_problems(settings: TaskToml, paths: Sequence[str], *, buildable: bool) -> Iterator[Problem]:
    """Faults of image, sizes, verifier mode and network. `buildable`: the Dockerfile's folder is as it is on disk."""
    machine, verifier = settings.environment, settings.verifier
    if machine.docker_image is None and DOCKERFILE not in paths and COMPOSE not in paths:
        remedy = f"set [environment] docker_image, or add {DOCKERFILE}"
        yield Problem("the task has no image", ("environment",), remedy)
    if machine.docker_image is None and DOCKERFILE in paths and not buildable:
        message = "an image cannot be built from templates"
        yield Problem(message, ("environment",), "set [environment] docker_image")
    for older, newer in (("memory", "memory_mb"), ("storage", "storage_mb")):
        size, size_mb = getattr(machine, older), getattr(machine, newer)
        if size is not None and size_mb is not None and as_mb(size) != size_mb:
            message = f"environment.{older} = {size!r} and environment.{newer} = {size_mb} disagree"
            yield Problem(message, ("environment", older), f"keep {newer} only")
    if verifier.environment_mode == "shared" and verifier.environment is not None:
        message = '[verifier.environment] needs environment_mode = "separate"'
        yield Problem(message, ("verifier", "environment_mode"))
    for name, phase in (("environment", machine), ("agent", settings.agent), ("verifier", verifier)):
        if phase.allowed_hosts and phase.network_mode != "allowlist":
            message = f'{name}.allowed_hosts needs {name}.network_mode = "allowlist"'
            yield Problem(message, (name, "allowed_hosts"))


def mutation_problems(tables: Sequence[MutationTable], solution: FileTree) -> Iterator[Problem]:
    """Declared mutations that do not apply to the solution, or share a name."""
    paths = [file.path for file in solution.files]
    names: set[str] = set()
    for index, table in enumerate(tables):
        key: KeyPath = ("assay", "mutations", index)
        file = solution.get(table.file)
        if not paths:
            yield Problem(f"mutation {table.name!r} has no solution to change", key)
        elif file is None:
            message = f"mutation {table.name!r}: solution/ has no file {table.file!r}"
            yield Problem(message, (*key, "file"), near_match(table.file, paths))
        elif table.find.encode() not in file.content:
            message = f"mutation {table.name!r}: {table.find!r} does not stand in solution/{table.file}"
            yield Problem(message, (*key, "find"), "copy it from the solution")
        elif table.find == table.replace:
            yield Problem(f"mutation {table.name!r} changes nothing", (*key, "replace"))
        if table.name in names:
            yield Problem(f"two mutations are called {table.name!r}", (*key, "name"), "name what each does")
        names.add(table.name)


def as_mb(size: str) -> int:
    """An older schema's size, like `1.5G`, in whole megabytes."""
    text = size.strip().upper()
    return max(1, int(float(text[:-1]) * _MB[text[-1]]))
