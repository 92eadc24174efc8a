"""A task: one item of a suite, with everything that decides what it measures.

A task's `version` is the digest of all of it: instruction, image pin, budget, limits, solution, tests,
grader. A changed timeout is a changed task (DESIGN, "Task format").
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from harness.records.base import Record, digest_of, sha256_of
from harness.records.conversation import Conversation
from harness.records.vocabulary import GradingEnvironment, Network

DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
HOST_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")  # `${NAME}`, `${NAME:-default}`


class TreeFile(Record):
    """One file to carry into a sandbox, byte-exact. `path` is relative, with forward slashes."""

    path: str
    content: bytes
    mode: int = 0o644

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        parts = path.split("/")
        if not path or path.startswith("/") or ".." in parts or "" in parts:
            raise ValueError(f"{path!r} is not a plain relative path")
        return path


class FileTree(Record):
    """A small folder as a value: files by path, each path once, sorted."""

    files: tuple[TreeFile, ...] = ()

    @field_validator("files")
    @classmethod
    def _sorted_and_distinct(cls, files: tuple[TreeFile, ...]) -> tuple[TreeFile, ...]:
        ordered = tuple(sorted(files, key=lambda file: file.path))
        paths = [file.path for file in ordered]
        if len(set(paths)) != len(paths):
            raise ValueError("a path stands twice in the tree")
        return ordered

    def __bool__(self) -> bool:
        return bool(self.files)

    def get(self, path: str) -> TreeFile | None:
        """The file at `path`, or None."""
        return next((file for file in self.files if file.path == path), None)

    def with_file(self, replacement: TreeFile) -> FileTree:
        """This tree with one file added or replaced."""
        kept = tuple(file for file in self.files if file.path != replacement.path)
        return FileTree(files=(*kept, replacement))

    def digests(self) -> dict[str, str]:
        """sha256 by path; the mode's execute bit is part of the key's value."""
        return {file.path: f"{sha256_of(file.content)}:{file.mode:o}" for file in self.files}


class ImagePin(Record):
    """The image a task runs in. `reference` is what the author wrote; only `digest` reaches the engine.

    `digest` is a registry digest when `repository` is set (pulled as `repository@digest`), else the
    engine's config digest (image id) of a locally built image. None: not locked yet.
    """

    reference: str
    repository: str | None = None
    digest: str | None = Field(default=None, pattern=DIGEST_PATTERN)
    platform: str | None = None  # e.g. linux/amd64

    @property
    def locator(self) -> str | None:
        """What to ask the engine for, or None when the pin is open."""
        if self.digest is None:
            return None
        return f"{self.repository}@{self.digest}" if self.repository else self.digest


class Budget(Record):
    """What a solver may spend. None: no limit on that account."""

    wall_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)
    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    def overridden(self, other: Budget) -> Budget:
        """This budget with every account that `other` sets replaced."""
        changes = {key: value for key, value in other if value is not None}
        return self.model_copy(update=changes)


class Limits(Record):
    """What a sandbox may use."""

    cpus: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    memory_mb: int = Field(default=2048, gt=0)
    disk_mb: int | None = Field(default=10240, gt=0)
    pids: int = Field(default=512, gt=0)
    network: Network = Network.NONE
    output_bytes: int = Field(default=1_048_576, gt=0)  # kept per stream and command
    command_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False
    )  # longest single command; None: the budget's


class Environment(Record):
    """How a task's container is prepared before the solver's clock starts."""

    workdir: str = "/app"
    user: str | None = None
    env: dict[str, str] = {}
    files: FileTree = FileTree()  # copied below `workdir`
    setup: str | None = None  # a script run by root with `sh`, before the solver; its files are in `setup_files`
    setup_files: FileTree = FileTree()  # visible only while the setup runs
    setup_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    capabilities: tuple[str, ...] | None = None  # added to an empty set; None: the engine's default set


class Solution(Record):
    """The reference solution: `script` is a path in `files`, run with bash in the workdir."""

    script: str = "solve.sh"
    files: FileTree = FileTree()
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_its_script(self) -> Self:
        if self.files and self.files.get(self.script) is None:
            raise ValueError(f"the solution has no file {self.script!r}")
        return self


class Mutation(Record):
    """A declared wrong reference: the first occurrence of `find` in the solution file becomes `replace`."""

    name: str = Field(min_length=1)
    file: str = "solve.sh"
    find: str = Field(min_length=1)
    replace: str


class Grading(Record):
    """How the sealed result is judged. `grader` is `id@version`."""

    grader: str = "script@1"
    environment: GradingEnvironment = GradingEnvironment.SAME
    tests: FileTree = FileTree()
    script: str = "test.sh"
    timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    env: dict[str, str] = {}
    user: str | None = None
    artifacts: tuple[str, ...] = ()  # absolute paths carried to a fresh environment, and archived
    artifact_bytes: int = Field(default=64 * 1024 * 1024, gt=0)
    keep_services: bool = False  # processes the solver started stay alive during grading (same only)
    pass_at: float = Field(default=1.0, allow_inf_nan=False)  # passed when reward >= this, within 1e-6

    @model_validator(mode="after")
    def _services_need_the_same_container(self) -> Self:
        if self.keep_services and self.environment is GradingEnvironment.FRESH:
            raise ValueError("keep_services needs grading environment 'same': processes cannot be carried")
        return self


class Task(Record):
    """One item. `source` (where it came from) is for people and is not part of the version."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$")
    family: str
    instruction: str
    image: ImagePin
    environment: Environment = Environment()
    budget: Budget = Budget()
    limits: Limits = Limits()
    solution: Solution = Solution()
    mutations: tuple[Mutation, ...] = ()
    grading: Grading = Grading()
    conversation: Conversation | None = None  # then there is no container, and `image` pins its environment
    requires_write: bool = True
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    context_digest: str | None = None  # of environment/ with its Dockerfile, where the image is built
    build_context: str | None = None  # path of that folder: where to build, not what is measured
    unsupported: tuple[str, ...] = ()  # features this task needs and Assay lacks; such a task is never run
    source: str = ""

    @cached_property
    def host_variables(self) -> dict[str, bool]:
        """Names of the host's variables that the task's environments ask for as `${NAME}` (Harbor's notation), and
        whether each must be set because somewhere it has no default."""
        values = [value for part in (self.environment, self.grading, self.solution) for value in part.env.values()]
        found: dict[str, bool] = {}
        for name, default in (match.groups() for value in values for match in HOST_VARIABLE.finditer(value)):
            found[name] = found.get(name, False) or default is None
        return found

    @cached_property
    def version(self) -> str:
        """Digest of everything that decides what the task measures."""
        plain = self.model_dump(
            mode="json",
            exclude={"source", "metadata", "build_context", "environment", "solution", "grading", "conversation"},
        )
        if self.conversation is not None:  # tasks in containers keep the versions they had before there were others
            plain["conversation"] = self.conversation.model_dump(mode="json", exclude={"folder"})
        plain["environment"] = self.environment.model_dump(mode="json", exclude={"files", "setup_files"})
        plain["environment"]["files"] = self.environment.files.digests()
        plain["environment"]["setup_files"] = self.environment.setup_files.digests()
        plain["solution"] = self.solution.model_dump(mode="json", exclude={"files"})
        plain["solution"]["files"] = self.solution.files.digests()
        plain["grading"] = self.grading.model_dump(mode="json", exclude={"tests"})
        plain["grading"]["tests"] = self.grading.tests.digests()
        return digest_of(plain)
