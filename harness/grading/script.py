"""The test-script grader: Harbor's contract, with the verdict channel out of the solver's reach.

After the seal nothing of the solver's runs (unless the task keeps services). Then `/logs/verifier` and `/tests`
are wiped and made anew from outside the container, a nonce is put beside the verdict, `tests/test.sh` runs, every
process it left is ended, and the verdict is read from outside. What was planted before is flagged, never read.

What remains in environment `same`: the test script runs with the tools of a container the solver had root in
(its bash, its python), and reads what the solver put where its answer should be: a FIFO there holds the tests until
their time is over. `lint` and the grade's flags say so; environment `fresh` closes it. A solver that leaves a container
in which the tests cannot even start has failed (:mod:`harness.grading.probe`).
"""

from __future__ import annotations

import io
import tarfile

from harness.grading.probe import broken_by_solver, interpreters, probe
from harness.grading.verdict import Verdict, outcome_of, read_verdict
from harness.protocols import GradingCase, SandboxFileError
from harness.records.execution import Command, ExecResult
from harness.records.grade import Grade
from harness.records.task import FileTree, TreeFile
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason

VERDICT_FOLDER = "/logs/verifier"
TESTS_FOLDER = "/tests"
NONCE_FILE = ".assay-nonce"
VERDICT_FILES = ("reward.json", "reward.txt")
FOLDER_BYTES = 8 * 1024 * 1024  # the verdict folder may hold logs too; more than this is no verdict
SAME_EXPOSURE = "graded in the solver's own container: its tools ran the tests"
SERVICES_EXPOSURE = "services kept alive: the solver's processes could reach the verdict folder"


class ScriptGrader:
    """Runs `tests/test.sh` and reads the reward it writes."""

    id = "script"
    version = "1"

    async def grade(self, case: GradingCase) -> Grade:
        shared = case.task.grading.environment is GradingEnvironment.SAME
        found = await probe(case.sandbox, case) if shared else None
        if found is not None and (broken := await broken_by_solver(case, found, frozenset({"bash"}))):
            return self._broken(broken)
        grade = await self._run_tests(case)
        if found is not None and "bash" in found.started and grade.outcome is Outcome.UNGRADED:
            broken = await broken_by_solver(case, found, interpreters(case.task))
            return self._broken(broken, grade) if broken else grade
        return grade

    def _broken(self, how: str, tests: Grade | None = None) -> Grade:
        """Failed: nothing was left to run the tests with. `tests` is what running them all the same gave."""
        grade = tests or Grade(grader=f"{self.id}@{self.version}", outcome=Outcome.FAILED, flags=(SAME_EXPOSURE,))
        detail = f"{how} ({grade.detail})" if grade.detail else how
        changes = {"outcome": Outcome.FAILED, "reward": None, "reason": Reason.SOLVER_BROKE, "detail": detail}
        return grade.model_copy(update=changes)

    async def _run_tests(self, case: GradingCase) -> Grade:
        flags = await self._prepare(case)
        result = await case.sandbox.exec(self._command(case))
        blobs = {
            name: case.keep(captured.head + captured.tail)
            for name, captured in (("stdout", result.stdout), ("stderr", result.stderr))
            if captured.seen_bytes
        }
        flags += [
            f"grader {name} truncated: {captured.kept_bytes} of {captured.seen_bytes} bytes kept"
            for name, captured in (("stdout", result.stdout), ("stderr", result.stderr))
            if captured.truncated
        ]
        if not case.task.grading.keep_services:
            await case.sandbox.end_processes()
        verdict = await self._verdict(case, result, blobs)
        reward = verdict.reward
        outcome = Outcome.UNGRADED
        if verdict.reason is None and reward is not None:
            outcome = outcome_of(reward, case.task.grading.pass_at)
        return Grade(
            grader=f"{self.id}@{self.version}",
            outcome=outcome,
            reward=reward,
            criteria=verdict.criteria or {},
            reason=verdict.reason,
            detail=verdict.detail,
            flags=tuple(flags),
            duration_s=result.duration_s,
            blobs=blobs,
        )

    async def _prepare(self, case: GradingCase) -> list[str]:
        grading = case.task.grading
        flags: list[str] = []
        if grading.environment is GradingEnvironment.SAME:
            flags.append(SAME_EXPOSURE)
            for folder in (VERDICT_FOLDER, TESTS_FOLDER):
                planted = await case.sandbox.list(folder)
                if planted:
                    flags.append(f"found before grading and removed: {folder} ({len(planted)} entries)")
                    case.note("grading.planted", {"folder": folder, "entries": list(planted)[:50]})
        if grading.keep_services:
            flags.append(SERVICES_EXPOSURE)
        nonce = TreeFile(path=NONCE_FILE, content=case.nonce.encode(), mode=0o444)
        await case.sandbox.put(FileTree(files=(nonce,)), VERDICT_FOLDER, replace=True)
        await case.sandbox.put(grading.tests, TESTS_FOLDER, replace=True)
        return flags

    @staticmethod
    def _command(case: GradingCase) -> Command:
        task = case.task
        return Command(
            argv=("bash", f"{TESTS_FOLDER}/{task.grading.script}"),
            timeout_s=task.grading.timeout_s,
            env={**task.environment.env, **task.grading.env},
            workdir=task.environment.workdir,
            user=task.grading.user,
            output_bytes=task.limits.output_bytes,
        )

    async def _verdict(self, case: GradingCase, result: ExecResult, blobs: dict[str, str]) -> Verdict:
        try:
            files = _files_in(await case.sandbox.fetch(VERDICT_FOLDER, max_bytes=FOLDER_BYTES))
        except SandboxFileError as error:
            reason = Reason.VERDICT_MALFORMED if error.problem == "too large" else Reason.VERDICT_TAMPERED
            return Verdict(reason=reason, detail=f"the verdict folder: {error.problem}")
        for name in VERDICT_FILES:
            if name in files:
                blobs[name] = case.keep(files[name])
        if result.timed_out:
            detail = f"the tests ran longer than {case.task.grading.timeout_s} s"
            return Verdict(reason=Reason.GRADER_TIMEOUT, detail=detail)
        if files.get(NONCE_FILE) != case.nonce.encode():
            return Verdict(reason=Reason.VERDICT_TAMPERED, detail="the verdict folder was replaced while the tests ran")
        verdict = read_verdict(files.get("reward.json"), files.get("reward.txt"))
        return verdict if verdict.reason is not Reason.VERDICT_MISSING else _why_missing(case, result)


def _why_missing(case: GradingCase, result: ExecResult) -> Verdict:
    if result.memory_killed:
        limit = case.task.limits.memory_mb
        return Verdict(reason=Reason.GRADER_MEMORY, detail=f"killed for memory during grading (limit {limit} MB)")
    if result.exit_code != 0:
        detail = f"the tests ended with exit code {result.exit_code} and wrote no verdict"
        return Verdict(reason=Reason.GRADER_CRASHED, detail=detail)
    return read_verdict(None, None)


def _files_in(archive: bytes) -> dict[str, bytes]:
    """Regular files of a fetched folder by relative path; what is not a regular file reads as no valid verdict."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive), errors="surrogateescape") as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            if member.isfile():
                body = tar.extractfile(member)
                found[name] = body.read() if body is not None else b""
            elif name in VERDICT_FILES:
                found[name] = b"\xff not a regular file"
    return found
