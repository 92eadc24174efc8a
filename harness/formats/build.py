"""From a task's settings and files to its record.

Harbor's defaults stand: no `[agent] timeout_sec` is no wall limit, the verifier has 600 s, the network is public, the
verifier shares the agent's container. Absent cpus, memory and storage become those of :class:`Limits` (1, 2048 MB,
10240 MB: the values Harbor's older schemas had by default). Without `[environment] workdir` it is the one that the
Dockerfile ends in, else /app. Values of `env` keep their `${VAR}` templates: nobody resolves a host variable while
loading, so that a task's version never depends on whose machine reads it.

Where there is a Dockerfile, `environment/` is its build context and nothing else: `environment/files/` and
`environment/setup.sh` have Assay's meaning there only when `[assay] setup` names a script.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.formats.checks import DOCKERFILE, as_mb, machine_problems, mutation_problems
from harness.formats.needs import unsupported_features
from harness.formats.parse import TASK_TOML, parse_task_toml
from harness.formats.places import near_match, raise_all
from harness.formats.schema import Artifact, TaskToml
from harness.formats.source import TaskSource, tree_below
from harness.formats.toml_lines import KeyPath, key_lines, nearest_line
from harness.records.base import digest_of
from harness.records.errors import TaskError
from harness.records.task import (
    Budget,
    Environment,
    FileTree,
    Grading,
    ImagePin,
    Limits,
    Mutation,
    Solution,
    Task,
)
from harness.records.vocabulary import GradingEnvironment, Network

INSTRUCTION = "instruction.md"
DEFAULT_SETUP = "environment/setup.sh"
DEFAULT_WORKDIR = "/app"
BUILD_PREFIX = "build:"

_NETWORKS = {"public": Network.INTERNET, "no-network": Network.NONE, "allowlist": Network.NONE}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Identity:
    """What a task is called, and the folder its image can be built from. `[assay] family` goes before `family`."""

    id: str
    family: str
    build_context: str | None = None


def build_task(identity: Identity, source: TaskSource) -> Task:
    """The task of these files. Raises TaskError, or LoadErrors with all that is wrong."""
    if TASK_TOML not in source.paths():
        raise TaskError(f"{TASK_TOML} is missing", place=source.where.place())
    content = source.read(TASK_TOML).content
    try:
        settings = parse_task_toml(content, source.where)
    except TaskError as error:
        raise_all([error, *_missing_files(content, source)], source.where.place())
        raise
    return _Builder(identity, source, settings).task()


def _missing_files(content: bytes, source: TaskSource) -> list[TaskError]:
    """What is missing from a task whose settings are bad, unless they might say that it stands elsewhere."""
    if b"steps" in content or b"windows" in content.lower():
        return []
    needed = (INSTRUCTION, "tests/test.sh")
    return [
        TaskError(f"{path} is missing", place=source.where.place()) for path in needed if path not in source.paths()
    ]


@dataclass
class _Builder:
    identity: Identity
    source: TaskSource
    settings: TaskToml
    errors: list[TaskError] = field(default_factory=list)

    def task(self) -> Task:
        parts: dict[str, Any] = {
            "instruction": self._tried(self._instruction, ""),
            "image": self._tried(self._image, ImagePin(reference="?")),
            "environment": self._tried(self._environment, Environment()),
            "solution": self._tried(self._solution, Solution()),
            "grading": self._tried(self._grading, Grading()),
            "metadata": self._tried(self._metadata, dict[str, Any]()),
        }
        problems = (
            *machine_problems(self.settings, self.source.paths(), buildable=self.identity.build_context is not None),
            *mutation_problems(self.settings.assay.mutations, parts["solution"].files),
        )
        self.errors += [self._fault(problem.message, problem.key, problem.remedy) for problem in problems]
        raise_all(self.errors, self.source.where.place())
        assay = self.settings.assay
        try:
            return Task(
                id=self.identity.id,
                family=assay.family or self.identity.family,
                budget=Budget(wall_s=self.settings.agent.timeout_sec, **assay.budget.model_dump()),
                limits=self._limits(),
                mutations=tuple(Mutation(**table.model_dump()) for table in assay.mutations),
                requires_write=assay.requires_write,
                difficulty=assay.difficulty,
                tags=tuple(assay.tags),
                context_digest=self._context_digest,
                build_context=self.identity.build_context if self._context_digest else None,
                unsupported=unsupported_features(self.settings, self.source.paths()),
                source=self.source.where.place(),
                **parts,
            )
        except ValidationError as error:
            raise TaskError(
                f"no task can be called {self.identity.id!r}" if "id" in error.errors()[0]["loc"] else str(error),
                place=self.source.where.place(),
                remedy="rename the folder: letters, digits, '.', '_', '-', and first a letter or digit",
            ) from error

    # --- errors ---

    def _tried(self, part: Callable[[], _T], instead: _T) -> _T:
        try:
            return part()
        except TaskError as error:
            self.errors.append(error)
            return instead

    def _fault(self, message: str, key: KeyPath = (), remedy: str = "", path: str = TASK_TOML) -> TaskError:
        return TaskError(message, place=self.source.where.place(path, self._line(key) if key else None), remedy=remedy)

    def _line(self, key: KeyPath) -> int | None:
        return nearest_line(key_lines(self.source.read(TASK_TOML).content.decode("utf-8")), key)

    @property
    def _elsewhere(self) -> bool:
        """Whether the instruction and the tests may stand where only Harbor looks for them."""
        return bool(self.settings.steps) or self.settings.environment.os.lower() != "linux"

    # --- parts ---

    def _instruction(self) -> str:
        if INSTRUCTION in self.source.paths():
            # Bytes that are no UTF-8 stay: as lone surrogates, which encode back to what they were.
            return self.source.read(INSTRUCTION).content.decode("utf-8", "surrogateescape")
        if self._elsewhere:
            return ""
        raise TaskError(f"{INSTRUCTION} is missing", place=self.source.where.place(), remedy="say there what to do")

    def _image(self) -> ImagePin:
        reference = self.settings.environment.docker_image
        if reference is None:
            return ImagePin(reference=f"{BUILD_PREFIX}{self._context_digest}" if self._context_digest else "?")
        repository, at, digest = reference.partition("@")
        if not at:
            return ImagePin(reference=reference)
        try:
            # `name:tag@digest` is legal; the digest decides, so the tag is not part of what the engine is asked for.
            return ImagePin(reference=reference, repository=_without_tag(repository), digest=digest)
        except ValidationError as error:
            raise self._fault(
                f"environment.docker_image = {reference!r}: what follows '@' is no digest",
                ("environment", "docker_image"),
                "write name@sha256: and 64 hexadecimal digits",
            ) from error

    @cached_property
    def _context_digest(self) -> str | None:
        if self.settings.environment.docker_image is not None or DOCKERFILE not in self.source.paths():
            return None
        below = [path for path in self.source.paths() if path.startswith("environment/")]
        return digest_of([[path, self.source.digest(path)] for path in below])

    def _environment(self) -> Environment:
        machine, assay = self.settings.environment, self.settings.assay
        setup = self._setup_path()
        changes: dict[str, Any] = {} if assay.setup_sec is None else {"setup_s": assay.setup_sec}
        return Environment(
            workdir=self._workdir,
            user=_user(self.settings.agent.user),
            env=machine.env,
            files=tree_below(self.source, "environment/files") if self._prepares else FileTree(),
            setup=setup.removeprefix("environment/") if setup else None,
            setup_files=(
                tree_below(self.source, "environment", leave_out=("Dockerfile", "files/")) if setup else FileTree()
            ),
            capabilities=None if assay.capabilities is None else tuple(sorted(set(assay.capabilities))),
            **changes,
        )

    @cached_property
    def _prepares(self) -> bool:
        """Whether files and scripts in `environment/` are for Assay to use."""
        return self.settings.assay.setup is not None or DOCKERFILE not in self.source.paths()

    @cached_property
    def _workdir(self) -> str:
        if self.settings.environment.workdir is not None:
            return self.settings.environment.workdir
        if DOCKERFILE in self.source.paths():
            return last_workdir(self.source.read(DOCKERFILE).content.decode("utf-8", "replace")) or DEFAULT_WORKDIR
        return DEFAULT_WORKDIR

    def _setup_path(self) -> str | None:
        setup = self.settings.assay.setup
        if setup is None:
            return DEFAULT_SETUP if self._prepares and DEFAULT_SETUP in self.source.paths() else None
        inside = posixpath.normpath(setup)
        if not inside.startswith("environment/") or inside.startswith("environment/files/"):
            remedy = "put the script in environment/, outside environment/files/"
            raise self._fault(f"assay.setup = {setup!r} is not in environment/", ("assay", "setup"), remedy)
        if inside not in self.source.paths():
            scripts = [path for path in self.source.paths() if path.startswith("environment/")]
            raise self._fault(f"assay.setup = {setup!r}: no such file", ("assay", "setup"), near_match(inside, scripts))
        return inside

    def _limits(self) -> Limits:
        machine, limits = self.settings.environment, self.settings.assay.limits
        given: dict[str, Any] = {
            "cpus": machine.cpus,
            "memory_mb": machine.memory_mb or (as_mb(machine.memory) if machine.memory else None),
            "disk_mb": machine.storage_mb or (as_mb(machine.storage) if machine.storage else None),
            "pids": limits.pids,
            "output_bytes": limits.output_bytes,
            "command_s": limits.command_sec,
        }
        return Limits(network=self._network(), **{key: value for key, value in given.items() if value is not None})

    def _network(self) -> Network:
        machine = self.settings.environment
        mode = machine.network_mode
        if mode is None:
            mode = "no-network" if machine.allow_internet is False else "public"
        return _NETWORKS[self.settings.agent.network_mode or mode]

    def _solution(self) -> Solution:
        files = tree_below(self.source, "solution")
        if files and files.get("solve.sh") is None and not self._elsewhere:
            raise TaskError("solution/ has no solve.sh", place=self.source.where.place("solution"))
        if files.get("solve.sh") is None:
            return Solution(env=self.settings.solution.env)
        return Solution(files=files, env=self.settings.solution.env)

    def _grading(self) -> Grading:
        table, verifier = self.settings.assay.grading, self.settings.verifier
        tests = tree_below(self.source, "tests")
        if tests.get("test.sh") is None and not self._elsewhere:
            raise TaskError(
                "tests/test.sh is missing", place=self.source.where.place(), remedy="no task without a check"
            )
        environment = self.settings.grading_environment
        if table.keep_services and environment is GradingEnvironment.FRESH:
            raise self._fault(
                "keep_services needs shared grading: processes cannot be carried into another container",
                ("assay", "grading", "keep_services"),
            )
        changes: dict[str, Any] = {
            "grader": table.grader,
            "artifact_bytes": table.artifact_bytes,
            "pass_at": table.pass_at,
        }
        return Grading(
            environment=environment,
            tests=tests,
            timeout_s=verifier.timeout_sec,
            env=verifier.env,
            user=_user(verifier.user),
            artifacts=self._artifacts(),
            keep_services=table.keep_services,
            **{key: value for key, value in changes.items() if value is not None},
        )

    def _artifacts(self) -> tuple[str, ...]:
        paths: list[str] = []
        for index, entry in enumerate(self.settings.artifacts):
            given = entry.source if isinstance(entry, Artifact) else entry
            if ".." in given.split("/"):
                raise self._fault(f"artifacts[{index}] = {given!r}: no '..' here", ("artifacts", index))
            path = posixpath.normpath(posixpath.join(self._workdir, given))
            if path not in paths:
                paths.append(path)
        return tuple(paths)

    def _metadata(self) -> dict[str, Any]:
        return {key: self._json_able(value, ("metadata", key)) for key, value in self.settings.metadata.items()}

    def _json_able(self, value: Any, key: KeyPath) -> Any:
        """TOML's dates become ISO text; infinities and NaN, which JSON lacks, are refused."""
        if isinstance(value, dict):
            return {name: self._json_able(inner, (*key, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._json_able(inner, (*key, index)) for index, inner in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            raise self._fault(f"{value} cannot be kept as JSON", key, "write it as text")
        return value.isoformat() if hasattr(value, "isoformat") else value


def last_workdir(dockerfile: str) -> str | None:
    """The folder that a Dockerfile's last stage works in, where it says so without variables."""
    workdir = ""
    for line in dockerfile.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            workdir = ""
        elif word.upper() == "WORKDIR":
            workdir = posixpath.normpath(posixpath.join(workdir, rest.strip().strip("\"'")))
    return workdir if workdir.startswith("/") and "$" not in workdir else None


def _user(user: str | int | None) -> str | None:
    return None if user is None else str(user)


def _without_tag(repository: str) -> str:
    head, colon, tail = repository.rpartition(":")
    return head if colon and "/" not in tail else repository
