"""Brings a task's container to the state in which the solver's clock may start."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.protocols import Sandbox
from harness.records.errors import SandboxFault
from harness.records.execution import Command, SandboxSpec
from harness.records.task import HOST_VARIABLE, FileTree, Task
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Phase, Reason
from harness.runner.journal import Journal

SETUP_FOLDER = "/.assay"
SETUP_PATH = "setup"


def with_host_variables(task: Task, host: Mapping[str, str]) -> Task:
    """The task with `${NAME}` and `${NAME:-default}` in its environments filled in from `host`.

    Raises SandboxFault(setup.failed) naming a variable that is not set and has no default.
    """

    def filled(env: Mapping[str, str]) -> dict[str, str]:
        return {key: HOST_VARIABLE.sub(value_of, value) for key, value in env.items()}

    def value_of(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name not in host and default is None:
            raise SandboxFault(
                f"the task asks for the variable {name}, which is not set here",
                reason=Reason.SETUP_FAILED.value,
                place=task.source,
                remedy=f"export {name}=…",
            )
        return host.get(name, default or "")

    if not task.host_variables:
        return task
    parts = {
        name: getattr(task, name).model_copy(update={"env": filled(getattr(task, name).env)})
        for name in ("environment", "grading", "solution")
    }
    return task.model_copy(update=parts)


def sandbox_spec(plan: TrialPlan, purpose: str) -> SandboxSpec:
    """The sandbox a trial asks for, or the fresh one for its grading."""
    task = plan.task
    capabilities = task.environment.capabilities
    return SandboxSpec(
        run=plan.run,
        trial=plan.trial,
        purpose=purpose,
        image=task.image,
        limits=task.limits,
        workdir=task.environment.workdir,
        env=task.environment.env,
        user=task.environment.user,
        capabilities=capabilities or (),
        drop_capabilities=capabilities is not None,
    )


async def prepare(sandbox: Sandbox, plan: TrialPlan, journal: Journal) -> None:
    """Copy the task's files and run its setup script. Raises SandboxFault(setup.failed) with the script's output."""
    environment = plan.task.environment
    journal.phase = Phase.SETUP
    await sandbox.put(environment.files, environment.workdir)
    if environment.setup is None:
        return
    folder = f"{SETUP_FOLDER}/{SETUP_PATH}"
    await sandbox.put(environment.setup_files, folder)
    command = Command(
        argv=("sh", f"{folder}/{environment.setup}"),
        timeout_s=environment.setup_s,
        env=environment.env,
        workdir=environment.workdir,
        user="root",
    )
    result = await sandbox.exec(command)
    payload, blobs = journal.command_payload(result)
    journal.note("setup", {"argv": list(command.argv), **payload}, actor=Actor.ENVIRONMENT, blobs=blobs)
    await sandbox.put(FileTree(), SETUP_FOLDER, replace=True)
    if result.exit_code != 0:
        how = f"ran longer than {environment.setup_s} s" if result.timed_out else f"exit code {result.exit_code}"
        tail = (result.stderr.text or result.stdout.text)[-500:].strip()
        raise SandboxFault(
            f"the setup script failed ({how}): {tail}", reason=Reason.SETUP_FAILED.value, place=plan.task.source
        )
