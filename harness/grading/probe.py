"""Whether a grader's interpreters can still start in the container that the solver left.

A solver with root can make its container such that nothing runs there: no workdir, no libc, a `bash` that says
nothing. Left ungraded it would have chosen "no grade" over "failed", so who is at fault is asked for: what starts in a
container as the solver found it, and twice not in the one it left, the solver broke. What starts in neither is the
task's or the image's fault, and stays ungraded.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.protocols import GradingCase, Sandbox
from harness.records.base import sha256_of
from harness.records.errors import SandboxFault
from harness.records.execution import Command, ExecResult
from harness.records.task import Task
from harness.records.vocabulary import Reason

PROBE_S = 8.0  # a shell that says nothing for so long will run no tests either
_OUTPUT_BYTES = 4096


@dataclass(frozen=True)
class Probe:
    """What started: names of interpreters; and what was said of those that did not."""

    started: frozenset[str]
    said: str


def interpreters(task: Task) -> frozenset[str]:
    """What the tests of a task run with: bash, and python3 where there is a Python file among them."""
    python = any(file.path.endswith(".py") for file in task.grading.tests.files)
    return frozenset({"bash", "python3"} if python else {"bash"})


async def probe(sandbox: Sandbox, case: GradingCase) -> Probe:
    """Start the interpreters as the tests would be: same folder, user and variables."""
    task = case.task
    word = sha256_of(case.nonce.encode())[-16:]
    # Each says a word: a program put in its place that merely succeeds does not. Only what the tests run anyway is
    # run: what a solver put in another's place gets no turn.
    lines = {"bash": f"echo {word} bash", "python3": f"python3 -c 'print(\"{word} python3\")'"}
    command = Command(
        argv=("bash", "-c", "\n".join(line for name, line in lines.items() if name in interpreters(task))),
        timeout_s=PROBE_S,
        env={**task.environment.env, **task.grading.env},
        workdir=task.environment.workdir,
        user=task.grading.user,
        output_bytes=_OUTPUT_BYTES,
    )
    result = await sandbox.exec(command)
    said = result.stdout.text.splitlines()
    return Probe(frozenset(name for name in lines if f"{word} {name}" in said), _said(result))


async def broken_by_solver(case: GradingCase, found: Probe, needed: frozenset[str]) -> str | None:
    """What the solver broke of the interpreters that are `needed`, in words; None when it cannot be laid to it.

    `found` is the probe of the container it left, taken before anything of the grader's ran there.
    """
    missing = needed - found.started
    if not missing or case.pristine is None:
        return None
    try:
        async with case.pristine() as pristine:
            reference = await probe(pristine, case)
    except SandboxFault as fault:
        if fault.reason != Reason.SETUP_FAILED:
            raise
        reference = Probe(frozenset(), str(fault))  # nobody's to say what it would be like
    missing &= reference.started
    again = await probe(case.sandbox, case) if missing else found
    missing -= again.started
    probes = {"left": found, "pristine": reference, "again": again}
    told = {name: {"started": sorted(one.started), "said": one.said} for name, one in probes.items()}
    case.note("grading.probe", {"needed": sorted(needed), "broken": sorted(missing), **told})
    if not missing:
        return None
    names = " and ".join(sorted(missing))
    return f"{names} cannot start in the container the solver left, but can in one as it found it: {found.said}"


def _said(result: ExecResult) -> str:
    how = f"no end after {PROBE_S:g} s" if result.timed_out else f"exit code {result.exit_code}"
    words = " ".join((result.stderr.text or result.stdout.text).split())[:300]
    return f"{how}: {words}" if words else how
