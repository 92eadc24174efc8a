"""The schema of `task.toml`: Harbor's 1.4 and older, and Assay's `[assay]` table.

Every model forbids unknown keys and converts nothing: a quoted number is an error, not a number. Fields that Assay
cannot honour are read all the same, so that a valid Harbor task is never mistaken for a malformed one; what becomes
of them is :mod:`harness.formats.build`'s matter.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness.records.vocabulary import GradingEnvironment

KNOWN_SCHEMAS = ("1.0", "1.1", "1.2", "1.3", "1.4")

# What the engine grants when nobody says anything.
DEFAULT_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
CAPABILITIES = (
    *DEFAULT_CAPABILITIES,
    "AUDIT_CONTROL", "AUDIT_READ", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "IPC_LOCK",
    "IPC_OWNER", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "NET_ADMIN", "NET_BROADCAST", "PERFMON",
    "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
)  # fmt: skip


class Table(BaseModel):
    """A TOML table: no key beyond the declared ones, no conversion of types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _size_mb(text: str) -> str:
    if not re.fullmatch(r"\s*\d+(\.\d+)?\s*[KMGkmg]\s*", text):
        raise ValueError("a size is a number and K, M or G, like '2G'")
    return text


def _capability(name: str) -> str:
    if name.removeprefix("CAP_") not in CAPABILITIES:
        raise ValueError(f"no Linux capability is called {name!r}")
    return name.removeprefix("CAP_")


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError("give an absolute path without '..'")
    return path


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Size = Annotated[str, AfterValidator(_size_mb)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Capability = Annotated[str, AfterValidator(_capability)]
Megabytes = Annotated[int, Field(gt=0, le=1 << 26)]  # 64 TiB: more than any machine has, and engines read 64 bits
NetworkMode = Literal["public", "no-network", "allowlist"]
User = str | Annotated[int, Field(ge=0)]


class Author(Table):
    name: str
    email: str | None = None


class Package(Table):
    """`[task]`: the package's entry in a registry."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(min_length=1)] | None = None
    description: str = ""
    authors: list[Author] = []
    keywords: list[str] = []


class PhaseNetwork(Table):
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None


class Agent(PhaseNetwork):
    timeout_sec: Seconds | None = None
    user: User | None = None


class Healthcheck(Table):
    command: str
    interval_sec: Seconds = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    start_interval_sec: Seconds = 5.0
    retries: Count = 3


class Tpu(Table):
    type: Annotated[str, Field(min_length=1)]
    topology: Annotated[str, Field(pattern=r"^\s*[1-9]\d*(x[1-9]\d*)+\s*$")]


class McpServer(Table):
    name: str
    transport: Literal["stdio", "sse", "streamable-http", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = []
    headers: dict[str, str] = {}


class Machine(PhaseNetwork):
    """`[environment]` and `[verifier.environment]`. `memory`, `storage`, `allow_internet` are older spellings."""

    build_timeout_sec: Seconds = 600.0
    docker_image: Annotated[str, Field(min_length=1)] | None = None
    os: Annotated[str, Field(pattern=r"(?i)^(linux|windows)$")] = "linux"
    cpus: Seconds | None = None
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None
    memory: Size | None = None
    storage: Size | None = None
    gpus: Annotated[int, Field(ge=0)] | None = None
    gpu_types: list[str] | None = None
    tpu: Tpu | None = None
    mcp_servers: list[McpServer] = []
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: Healthcheck | None = None
    workdir: AbsolutePath | None = None
    allow_internet: bool | None = None


class CollectHook(Table):
    command: str
    service: str = "main"
    timeout_sec: Seconds = 60.0
    user: User | None = None


class Verifier(PhaseNetwork):
    timeout_sec: Seconds = 600.0
    env: dict[str, str] = {}
    user: User | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Machine | None = None
    collect: list[CollectHook] = []


class SolutionTable(Table):
    env: dict[str, str] = {}


class Artifact(Table):
    source: Annotated[str, Field(min_length=1)]
    destination: str | None = None
    exclude: list[str] = []
    service: str | None = None


class Step(Table):
    name: Annotated[str, Field(min_length=1)]
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    min_reward: float | dict[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: list[str | Artifact] = []


class BudgetTable(Table):
    tokens: Count | None = None
    steps: Count | None = None
    cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class LimitsTable(Table):
    pids: Count | None = None
    output_bytes: Count | None = None
    command_sec: Seconds | None = None


class GradingTable(Table):
    grader: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    keep_services: bool = False
    artifact_bytes: Count | None = None
    pass_at: Annotated[float, Field(allow_inf_nan=False)] | None = None


class MutationTable(Table):
    name: Annotated[str, Field(min_length=1)]
    file: str = "solve.sh"
    find: Annotated[str, Field(min_length=1)]
    replace: str


class AssayTable(Table):
    """`[assay]`: what Assay needs beyond Harbor."""

    family: Annotated[str, Field(min_length=1)] | None = None
    difficulty: Literal["easy", "medium", "hard"] | None = None
    requires_write: bool = True
    tags: list[str] = []
    setup: str | None = None
    setup_sec: Seconds | None = None
    capabilities: list[Capability] | None = None
    budget: BudgetTable = BudgetTable()
    limits: LimitsTable = LimitsTable()
    grading: GradingTable = GradingTable()
    mutations: list[MutationTable] = []


class TaskToml(Table):
    """A whole `task.toml`. `version` is what `schema_version` was called at first."""

    schema_version: Literal["1.0", "1.1", "1.2", "1.3", "1.4"] | None = None
    version: Literal["1.0", "1.1", "1.2", "1.3", "1.4"] | None = None
    source: str | None = None
    task: Package | None = None
    metadata: dict[str, Any] = {}
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    environment: Machine = Machine()
    solution: SolutionTable = SolutionTable()
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    steps: list[Step] = []
    artifacts: list[str | Artifact] = []
    assay: AssayTable = AssayTable()

    @property
    def grading_environment(self) -> GradingEnvironment:
        """Harbor's rule: the mode as written, else `separate` when the verifier has an environment of its own."""
        mode = self.verifier.environment_mode or ("separate" if self.verifier.environment else "shared")
        return GradingEnvironment.FRESH if mode == "separate" else GradingEnvironment.SAME
