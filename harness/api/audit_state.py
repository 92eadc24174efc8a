"""What a suite is now: every task with its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness import plugins
from harness.api.audit_glance import solver_code, stamp_of
from harness.api.audit_request import AuditRequest
from harness.api.environments import episode_graders
from harness.api.suites import load_suite, require_locked
from harness.api.wiring import find_graders
from harness.audit.fingerprint import fingerprint
from harness.formats.suite import find_suite
from harness.records.audit import Fingerprint
from harness.records.suite import Suite
from harness.records.task import Task


@dataclass(frozen=True)
class Instrument:
    """A suite as it is now. `stamp` is of its files before they were read; None if they tell nothing."""

    suite: Suite
    fingerprints: Mapping[str, Fingerprint]
    stamp: str | None

    @property
    def tasks(self) -> dict[str, Task]:
        return {task.id: task for task in self.suite.tasks}

    @property
    def digests(self) -> dict[str, str]:
        return {task: found.digest for task, found in self.fingerprints.items()}

    @property
    def images(self) -> dict[str, str]:
        """The locator of the image of every task that has one."""
        return {task.id: task.image.locator or "" for task in self.suite.tasks if task.conversation is None}


def instrument(request: AuditRequest) -> Instrument:
    """Load the suite and compute its fingerprints. Raises AssayError; a suite without lock is refused."""
    stamp = stamp_of(find_suite(request.suite))  # before it is read: a later change is seen next time
    suite = load_suite(request.suite)
    require_locked(suite)
    judges: dict[str, object] = {**find_graders(suite), **episode_graders(suite)}
    graders = {name: plugins.code_digest(judge) for name, judge in judges.items()}
    solver = solver_code()
    found = {task.id: fingerprint(task, graders[task.grading.grader], solver) for task in suite.tasks}
    return Instrument(suite, found, stamp)
