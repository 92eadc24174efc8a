"""What is asked of a sandbox, and what it answers."""

from __future__ import annotations

from pydantic import Field

from harness.records.base import Record
from harness.records.task import ImagePin, Limits


class Command(Record):
    """One command to run. `argv` is never passed through a shell of ours; stdin is empty unless given."""

    argv: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(gt=0, allow_inf_nan=False)
    env: dict[str, str] = {}
    workdir: str | None = None
    user: str | None = None
    stdin: bytes | None = None
    output_bytes: int = Field(default=1_048_576, gt=0)  # kept per stream: half from the head, half from the tail


class Captured(Record):
    """What was kept of a stream. Nothing lies between head and tail when nothing was dropped."""

    head: bytes = b""
    tail: bytes = b""
    seen_bytes: int = 0

    @property
    def kept_bytes(self) -> int:
        return len(self.head) + len(self.tail)

    @property
    def truncated(self) -> bool:
        return self.seen_bytes > self.kept_bytes

    @property
    def text(self) -> str:
        """The kept bytes as text, decoded once with replacement, with a line that says what was dropped."""
        head = self.head.decode("utf-8", "replace")
        if not self.truncated:
            return (self.head + self.tail).decode("utf-8", "replace")
        dropped = self.seen_bytes - self.kept_bytes
        return f"{head}\n[… {dropped} of {self.seen_bytes} bytes dropped …]\n{self.tail.decode('utf-8', 'replace')}"


class ExecResult(Record):
    """How a command ended. `timed_out` is the harness's own clock and nothing else: exit codes 124 and 137 are data."""

    exit_code: int | None  # None: ended by the harness, or lost with its container
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    duration_s: float = 0.0
    timed_out: bool = False
    memory_killed: bool = False  # the kernel killed for memory inside the container while this ran
    stdio_held_open: bool = False  # the command ended but something it left behind still held its output
    output_ended_early: bool = False  # it ran on for seconds after its output ended: closed by it, or lost on the way
    processes_ended: int = 0  # processes the harness ended after a timeout


class SandboxSpec(Record):
    """A sandbox to open. `name` is unique per attempt; labels say whose it is."""

    run: str
    trial: str
    purpose: str = "trial"  # "trial", "grading" or "pristine"
    image: ImagePin
    limits: Limits
    workdir: str = "/"
    env: dict[str, str] = {}
    user: str | None = None
    capabilities: tuple[str, ...] = ()
    drop_capabilities: bool = True
    labels: dict[str, str] = {}


class SandboxFacts(Record):
    """What was really started, read back from the engine."""

    id: str
    name: str
    image_digest: str  # config digest of the started container's image
    repo_digest: str | None = None
    platform: str
    engine: str  # e.g. "docker 20.10.24"
    kernel: str = ""
    enforced: dict[str, str] = {}  # limit -> how it is enforced ("cgroup", "emulated: …", "refused: …")


class ProcessReport(Record):
    """What ending all processes of a sandbox took."""

    found: int
    method: str  # "none" (nothing was running), "signal", "restart", "memory" (the twin)
    duration_s: float


class Health(Record):
    """A sandbox's state between commands."""

    running: bool
    memory_killed: bool = False
    exit_code: int | None = None
    disk_bytes: int | None = None  # written on top of the image; None when unknown
    detail: str = ""


class ImageFacts(Record):
    """An image as the engine holds it."""

    digest: str  # config digest (image id)
    repo_digests: tuple[str, ...] = ()
    platform: str
    size_bytes: int = 0


class Owner(Record):
    """The process that a container or network belongs to, told apart from every other one, before and since.

    A process number means something within one process namespace of one machine until that machine starts anew, and
    is given again; with the start time it names one process for good.
    """

    host: str
    machine: str  # /etc/machine-id, "" where there is none
    boot: str  # the kernel's boot id
    namespace: int  # inode of the process namespace
    pid: int
    started: int  # clock ticks between boot and the start of the process

    @property
    def label(self) -> str:
        """One line of text that :meth:`read` reads back."""
        parts = (self.host, self.machine, self.boot, self.namespace, self.pid, self.started)
        return "/".join(str(part) for part in parts)

    @classmethod
    def read(cls, label: str) -> Owner | None:
        """The owner in a label, or None when the label is of no form we know."""
        host, *rest = label.split("/")
        if len(rest) != 5 or not all(part.isascii() and part.isdigit() for part in rest[2:]):
            return None
        machine, boot, namespace, pid, started = rest
        return cls(host=host, machine=machine, boot=boot, namespace=int(namespace), pid=int(pid), started=int(started))


class Leftover(Record):
    """A container or network that carries Assay's labels. `owner` None: the label that should say it is unreadable."""

    id: str
    kind: str  # "container", "network"
    name: str
    run: str
    trial: str | None = None
    created: str = ""
    owner: Owner | None = None
