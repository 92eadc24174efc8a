"""The seams of Assay: what a solver, a sandbox, a model, a grader, a task format and a store must do.

Everything here is a Protocol or a small frozen record; implementations are found by name through
:mod:`harness.plugins`. One contract suite per protocol in `tests/` runs on every implementation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness.records.archive import ArchiveItem, ImportOptions, Recognition
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.conversation import Action
from harness.records.environment import Answer, Call, Capabilities, Opening, ToolSpec
from harness.records.event import Event, EventDraft
from harness.records.execution import (
    Command,
    ExecResult,
    Health,
    ImageFacts,
    Leftover,
    ProcessReport,
    SandboxFacts,
    SandboxSpec,
)
from harness.records.grade import Grade, TrialResult
from harness.records.replay import Replayed
from harness.records.run import RunRow, TrialRow
from harness.records.task import Budget, FileTree, ImagePin, Mutation, Solution, Task
from harness.records.trial import TrialPlan

# --- sandbox -------------------------------------------------------------------------------------------


class SandboxFileError(Exception):
    """A path in a sandbox is missing, not of the asked kind, or larger than allowed."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem  # "missing", "not a file", "too large"


class Sandbox(Protocol):
    """A running container (or its twin). Relies on no tool inside the image.

    Every method raises :class:`harness.records.errors.SandboxFault` when the sandbox or its engine fails.
    """

    @property
    def facts(self) -> SandboxFacts: ...

    async def exec(self, command: Command) -> ExecResult:
        """Run a command. On timeout (or cancellation) it and all its descendants are dead before this returns."""
        ...

    async def put(self, tree: FileTree, dest: str, *, replace: bool = False) -> None:
        """Write files below the absolute folder `dest`, owned by root; with `replace`, nothing else stays in `dest`."""
        ...

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """The bytes of a regular file (symbolic links are not followed). Raises SandboxFileError."""
        ...

    async def list(self, path: str) -> tuple[str, ...]:
        """Relative paths of everything below `path`, sorted; empty when there is no such folder."""
        ...

    async def fetch(self, path: str, *, max_bytes: int) -> bytes:
        """A tar of `path` (file or folder) with modes, owners and links as they are. Raises SandboxFileError."""
        ...

    async def restore(self, archive: bytes, parent: str) -> None:
        """Unpack a tar from :meth:`fetch` below the absolute folder `parent`."""
        ...

    async def end_processes(self) -> ProcessReport:
        """End every process that is not the sandbox's own keeper, and verify that none is left. Files stay."""
        ...

    async def health(self) -> Health: ...

    async def peak_memory(self) -> int | None:
        """Most bytes in use at once since the start, page cache left out as far as that can be told; None: unknown."""
        ...

    async def changes(self) -> tuple[str, ...]:
        """Paths added, changed or deleted since the image, each with a leading `A`, `C` or `D` and a space."""
        ...

    async def written(self, *, max_bytes: int) -> bytes | None:
        """Everything on top of the image as one tar to :meth:`restore` at `/`, while nothing runs; None where it can
        only be fetched path by path. Raises SandboxFileError("too large")."""
        ...


class SandboxProvider(Protocol):
    """Opens sandboxes and finds what dead runs left behind."""

    name: str

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A sandbox for the length of the context; removed by id on every exit path, shielded from cancellation."""
        ...

    async def image(self, pin: ImagePin) -> ImageFacts | None:
        """The pinned image as the engine holds it, or None when it does not. Never pulls, never builds."""
        ...

    async def leftovers(self) -> tuple[Leftover, ...]:
        """Everything that carries Assay's labels, of any run, dead or alive."""
        ...

    async def remove(self, leftover: Leftover) -> None: ...


# --- model ---------------------------------------------------------------------------------------------

OnAttempt = Callable[[Attempt], Awaitable[None]]


class ChatModel(Protocol):
    """A chat model service. Raises :class:`harness.records.errors.ProviderFault` when it gives no answer."""

    name: str
    provider: str

    async def chat(self, request: ChatRequest, on_attempt: OnAttempt) -> ChatReply:
        """One call. `on_attempt` is awaited after every HTTP attempt, failed ones included."""
        ...


# --- solver --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remaining:
    """What is left of the budget; None on an account without limit."""

    wall_s: float | None
    tokens: int | None
    steps: int | None
    cost_usd: float | None


class SolverSandbox(Protocol):
    """The sandbox as a solver may use it. Every call is recorded, counted and revoked at the seal."""

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        """Run a shell line (a str: by bash, or else sh) or an argument vector; `timeout_s` is clamped."""
        ...

    async def put(self, tree: FileTree, dest: str) -> None: ...

    async def read(self, path: str, *, max_bytes: int = 1_048_576) -> bytes: ...


class SolverModel(Protocol):
    """The model as a solver may use it: metered, budgeted, recorded."""

    @property
    def name(self) -> str: ...

    async def chat(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> ChatReply: ...


@dataclass(frozen=True)
class Heard:
    """What the user answered. After the last message (`ended`) nothing more is heard: the gate is closed."""

    text: str
    ended: bool = False


class SolverConversation(Protocol):
    """A conversation as a solver may lead it. Every call is recorded, counted and revoked at the seal."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the agent has in this mode, of its own side and, in solo mode, of the user's."""
        ...

    @property
    def opening(self) -> str | None:
        """The user's first message; None in solo mode, where the instruction is all there is."""
        ...

    async def call(self, name: str, arguments: Any, *, namespace: str = "agent", id: str = "") -> Answer:
        """Call a tool. What is wrong with the call is in the answer. A tool that ends the episode closes the gate."""
        ...

    async def say(self, text: str) -> Heard:
        """Say something to the user and hear the answer. Raises ConfigError in solo mode."""
        ...


@dataclass(frozen=True)
class Episode:
    """All that a solver gets. `solution` and `mutations` are set only for solvers that declare `uses_solution`."""

    instruction: str
    workdir: str
    seed: int
    sandbox: SolverSandbox
    remaining: Callable[[], Remaining]
    budget: Budget
    model: SolverModel | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    note: Callable[[str, Mapping[str, Any]], None] = lambda kind, payload: None  # adds an event of the solver's own
    solution: Solution | None = None
    mutations: tuple[Mutation, ...] = ()
    conversation: SolverConversation | None = None  # then there is no sandbox: its methods raise ConfigError


@dataclass(frozen=True)
class Given:
    """What a task has for a solver that declares `uses_solution`."""

    solution: Solution | None
    mutations: tuple[Mutation, ...] = ()


@runtime_checkable
class Solver(Protocol):
    """Anything that attempts a task.

    Optional class attributes: `version` (str), `actor` ("agent" or "reference"), `uses_solution` (bool), `needs_model`
    (bool), `converses` (bool: it can lead conversations), `metered` (False for one that may call models past the
    harness: its spend is then unknown), `isolation` ("thread", the default for foreign code: a solver that blocks
    cannot stall the run; or "inline"), and two static methods that raise ConfigError, called before anything is stored
    or spent: `check_options(options)`, and, for one that declares `uses_solution`, `check_solutions(options, given)`
    with what each task of the run has for it (:class:`Given` by task id), which returns what else a reader should
    know, as sentences.
    """

    name: str

    async def run(self, episode: Episode) -> None:
        """Attempt the task and return. Exceptions become the stop `solver_error`, whatever their class."""
        ...


# --- grading -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradingCase:
    """What a grader gets: the task, a sandbox with the sealed result, and a place to keep evidence.

    `pristine` opens another sandbox as the solver found its own: to tell what the solver broke from what never worked.
    """

    task: Task
    sandbox: Sandbox
    nonce: str
    keep: Callable[[bytes], str]  # stores bytes in the blob folder, returns their sha256
    note: Callable[[str, Mapping[str, Any]], None]  # adds a grading event
    pristine: Callable[[], AbstractAsyncContextManager[Sandbox]] | None = None


class Grader(Protocol):
    """Judges a sealed result. Never raises for what the solver did: that is a Grade with a reason.

    A solver must not gain by making itself ungradable: what it broke is a fail (:mod:`harness.grading.probe`).
    """

    id: str
    version: str

    async def grade(self, case: GradingCase) -> Grade: ...


# --- tasks ---------------------------------------------------------------------------------------------


class TaskFormat(Protocol):
    """Loads tasks of one on-disk format."""

    name: str

    def recognises(self, folder: Path) -> bool:
        """Whether `folder` is one task (or family) of this format."""
        ...

    def load(self, folder: Path) -> tuple[Task, ...]:
        """All tasks of the folder. Raises TaskError or LoadErrors with file and line or key; never drops one."""
        ...


# --- archives ------------------------------------------------------------------------------------------


class Importer(Protocol):
    """Reads archives of one other harness. Reads only; what a source does not say stays unknown."""

    @property
    def name(self) -> str: ...

    def recognises(self, archive: Any) -> Recognition | None:
        """What the archive (a :class:`harness.importers.container.Archive`) is, from its content, or None."""
        ...

    def read(self, archive: Any, options: ImportOptions) -> Iterator[ArchiveItem]:
        """Runs, episodes and findings, one by one; a run before its episodes. May be called again, and gives the same.

        A part that cannot be read is a finding with `unread`, never an exception. Raises ArchiveError when nothing can.
        """
        ...


# --- environments ----------------------------------------------------------------------------------------


class EnvironmentSession(Protocol):
    """One instance of an environment. Never shared between the live episode, a replay and a reference run."""

    def call(self, call: Call) -> Answer:
        """Carry out a call. Never raises for what the caller did: that is an answer with `error` or `missing`.

        Raises EnvironmentFault when the environment itself fails.
        """
        ...

    def digest(self) -> str:
        """The digest of the state now. Raises EnvironmentFault when it declares none."""
        ...

    def snapshot(self) -> bytes:
        """The state, to :meth:`restore` later, in this session or another of the same environment and mode."""
        ...

    def restore(self, state: bytes) -> None: ...


class Environment(Protocol):
    """A named, versioned world of tools. In this process, or behind a carrier that speaks JSON lines."""

    @property
    def capabilities(self) -> Capabilities: ...

    def open(self, opening: Opening) -> AbstractContextManager[EnvironmentSession]:
        """A new instance in its initial state.

        Raises EnvironmentFault on an unknown mode, data version or initial state.
        """
        ...


@dataclass(frozen=True)
class EpisodeCase:
    """What a grader of episodes gets. `environment` opens instances of its own for reference runs.

    `data` names the version of the environment's data, `task` is the task's definition in the version to grade by.
    """

    replayed: Replayed
    task: Any
    environment: Environment
    opening: Opening


class EpisodeGrader(Protocol):
    """Judges a recorded episode from sealed evidence: its steps and the state a faithful replay ended in.

    `rule` says in words what passes; `code` is the digest of the source it is made of. Versions run side by side.
    """

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def rule(self) -> str: ...

    @property
    def code(self) -> str: ...

    def grade(self, case: EpisodeCase) -> Grade:
        """The grade, with a criterion for each part of the rule. An invalid replay is `invalid`, never a fail."""
        ...


class SimulatedUser(Protocol):
    """The user of one episode: the same for the same script, seed and messages."""

    def open(self) -> str:
        """The first message."""
        ...

    def hear(self, message: str, act: Callable[[Action], Answer]) -> Heard:
        """The answer to what the agent said. `act` carries out calls of the user's own tools."""
        ...


# --- evidence ------------------------------------------------------------------------------------------


class EvidenceStore(Protocol):
    """Append-only evidence. A call that writes is durable when it returns. Raises StoreError."""

    def create_run(self, row: RunRow) -> None: ...

    def run(self, run: str) -> RunRow:
        """The run with that id or unique prefix (`latest` for the newest). Raises StoreError with near matches."""
        ...

    def runs(self) -> tuple[RunRow, ...]: ...

    def plan(self, plans: Sequence[TrialPlan]) -> None:
        """Write the planned identity of trials (once per trial)."""
        ...

    def trials(self, run: str) -> tuple[TrialRow, ...]:
        """All attempts of a run, by slot and attempt, with state folded from events and the result when done."""
        ...

    def trial(self, trial: str) -> TrialRow: ...

    def append(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Chain and store events, in order, in one transaction."""
        ...

    def finish(self, result: TrialResult, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Store the last events of a trial and its result in one transaction."""
        ...

    def events(self, stream: str, kinds: Sequence[str] | None = None) -> Iterator[Event]: ...

    def put_blob(self, data: bytes) -> str:
        """Keep a body by content; returns its sha256 (`sha256:…`). Atomic: a torn write is never seen."""
        ...

    def blob(self, digest: str) -> bytes: ...

    def own(self, run: str) -> AbstractContextManager[None]:
        """Own a run while it executes. Raises StoreError when a live process owns it; ends with the process."""
        ...

    def owned(self, run: str) -> bool:
        """Whether a live process owns the run now."""
        ...
