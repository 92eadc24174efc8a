"""What is worth saying about one well-formed task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.formats.findings import Finding, Level
from harness.formats.schema import DEFAULT_CAPABILITIES
from harness.records.task import HOST_VARIABLE, FileTree, Task
from harness.records.vocabulary import GradingEnvironment, Network

WALL_LONG_S = 4 * 3600.0
TESTS_LONG_S = 1800.0
_LINE_CHARS_MIN = 12  # shorter lines of a solution say nothing when the instruction has them too

Rule = Callable[[Task], Iterator[Finding]]


def findings_about(task: Task) -> Iterator[Finding]:
    """All that the rules say about a task."""
    for rule in CONVERSATION_RULES if task.conversation is not None else RULES:
        yield from rule(task)


def _finding(task: Task, level: Level, code: str, message: str, remedy: str = "") -> Finding:
    return Finding(level, code, task.source or task.id, message, remedy, subject=task.family)


def _unsupported(task: Task) -> Iterator[Finding]:
    for feature in task.unsupported:
        yield _finding(task, Level.WARNING, "unsupported", f"the task needs {feature} and will not be run")


def _solution(task: Task) -> Iterator[Finding]:
    if not task.solution.files:
        message = "no reference solution: nobody can show that the task is achievable"
        yield _finding(task, Level.WARNING, "solution-missing", message, "add solution/solve.sh")
    elif not task.mutations:
        message = "no declared mutation: nothing shows that a wrong solution fails"
        yield _finding(task, Level.WARNING, "mutation-missing", message, "add [[assay.mutations]]")


def _null(task: Task) -> Iterator[Finding]:
    if not task.requires_write:
        message = "requires_write = false: doing nothing may pass"
        yield _finding(task, Level.NOTE, "null-may-pass", message, "make sure that the null audit fails it")


def _said_nowhere(task: Task) -> Iterator[Finding]:
    conversation = task.conversation
    if conversation is None or conversation.user is None:
        return
    if not task.requires_write and not conversation.outputs and not conversation.actions and not task.mutations:
        message = "nothing is asked for, said or forbidden: nothing shows that a wrong conversation fails"
        yield _finding(task, Level.WARNING, "nothing-asked", message, "add outputs, or [[task.forbidden]]")
    if not any(rule.ends for rule in conversation.user.rules):
        message = "no rule of the user ends the conversation, so that none is ever passed"
        yield _finding(task, Level.WARNING, "user-never-ends", message, "add a rule with ends = true")


def _reference_unread(task: Task) -> Iterator[Finding]:
    conversation = task.conversation
    if conversation is None or conversation.user is None:
        return
    shown = [output for output in conversation.outputs if output in conversation.user.opening]
    if shown:
        message = f"the user says what the agent is to find out: {', '.join(shown)}"
        yield _finding(task, Level.WARNING, "output-shown", message, "leave it out of the opening")


def _budget(task: Task) -> Iterator[Finding]:
    budget = task.budget
    if budget.wall_s is None:
        yield _finding(task, Level.WARNING, "budget-wall", "no wall-time budget", "set [agent] timeout_sec")
    elif budget.wall_s > WALL_LONG_S:
        message = f"a wall-time budget of {budget.wall_s / 3600:g} hours"
        yield _finding(task, Level.WARNING, "budget-long", message, "is that meant?")
    absent = [name for name in ("tokens", "steps", "cost_usd") if getattr(budget, name) is None]
    if absent:
        yield _finding(task, Level.NOTE, "budget-absent", f"no budget for {', '.join(absent)}", "set [assay.budget]")
    if task.grading.timeout_s > TESTS_LONG_S:
        message = f"the tests may take {task.grading.timeout_s / 60:g} minutes"
        yield _finding(task, Level.WARNING, "tests-long", message, "set [verifier] timeout_sec")


def _exposure(task: Task) -> Iterator[Finding]:
    grading = task.grading
    if grading.keep_services:
        message = "services of the solver stay alive while it is graded, and can act on the grading"
        yield _finding(task, Level.WARNING, "services-exposed", message, "check what they serve, not what they say")
    elif grading.environment is GradingEnvironment.SAME:
        message = (
            "graded in the solver's own container: the tests run with its tools, files it planted stay, and a FIFO in "
            "the place of its answer holds the tests until their time is over (ungraded)"
        )
        remedy = 'where artifacts say all, set [verifier] environment_mode = "separate"'
        yield _finding(task, Level.NOTE, "grading-shared", message, remedy)
    elif not grading.artifacts:
        message = "graded in a fresh container, to which no artifact is carried"
        yield _finding(task, Level.WARNING, "artifacts-missing", message, "name the solver's files in artifacts = […]")
    if task.limits.network is Network.INTERNET:
        message = "the solver can reach the internet, and the solution may be there"
        yield _finding(task, Level.NOTE, "network-open", message, '[environment] network_mode = "no-network"')


def _capabilities(task: Task) -> Iterator[Finding]:
    kept = task.environment.capabilities
    if kept is None:
        message = "root in the container keeps the engine's default capabilities, as in Harbor"
        remedy = "[assay] capabilities = [] drops all; name those that the task needs"
        yield _finding(task, Level.NOTE, "capabilities-default", message, remedy)
    elif kept:
        yield _finding(task, Level.NOTE, "capabilities-kept", f"root in the container keeps {', '.join(kept)}")
    added = sorted(set(kept or ()) - set(DEFAULT_CAPABILITIES))
    if added:
        message = f"capabilities beyond the engine's default: {', '.join(added)}"
        yield _finding(task, Level.WARNING, "capabilities-added", message, "drop them if you can")


def _host_variables(task: Task) -> Iterator[Finding]:
    for table, env in (
        ("environment", task.environment.env),
        ("solution", task.solution.env),
        ("verifier", task.grading.env),
    ):
        names = sorted({match[1] for value in env.values() for match in HOST_VARIABLE.finditer(value)})
        if names:
            message = f"[{table}] env takes {', '.join(names)} from the host"
            yield _finding(task, Level.NOTE, "host-variable", message, "a value there is not part of the version")


def _tests(task: Task) -> Iterator[Finding]:
    files = task.grading.tests.files
    # A heuristic: a test may well build the path from pieces.
    if files and not any(b"/logs/verifier" in file.content or b"reward." in file.content for file in files):
        message = "no test file mentions /logs/verifier: a task that writes no reward is never graded"
        yield _finding(task, Level.WARNING, "reward-unwritten", message, "write /logs/verifier/reward.txt")


def _instruction(task: Task) -> Iterator[Finding]:
    try:
        task.instruction.encode("utf-8")
    except UnicodeEncodeError:
        message = "the instruction is not UTF-8"
        yield _finding(task, Level.WARNING, "instruction-encoding", message, "save instruction.md as UTF-8")
    if not task.instruction.strip() and "steps" not in "".join(task.unsupported):
        yield _finding(task, Level.WARNING, "instruction-empty", "the instruction says nothing")
    script = task.solution.files.get(task.solution.script)
    lines = _telling_lines(script.content) if script else set()
    shown = {line for line in lines if line in task.instruction}
    if shown and len(shown) * 2 >= len(lines):
        message = f"the instruction shows {len(shown)} of the solution's {len(lines)} telling lines"
        yield _finding(task, Level.WARNING, "solution-shown", message, "describe the result, not the way")


def _telling_lines(script: bytes) -> set[str]:
    lines = {line.strip() for line in script.decode("utf-8", "replace").splitlines()}
    return {line for line in lines if len(line) >= _LINE_CHARS_MIN and not line.startswith(("#", "set -"))}


def _line_ends(task: Task) -> Iterator[Finding]:
    trees: tuple[tuple[str, FileTree], ...] = (
        ("solution", task.solution.files),
        ("tests", task.grading.tests),
        ("environment", task.environment.setup_files),
    )
    for folder, tree in trees:
        for file in tree.files:
            if b"\r\n" in file.content and (file.path.endswith(".sh") or file.content.startswith(b"#!")):
                message = f"{folder}/{file.path} has CRLF line ends, which shells read as part of the words"
                yield _finding(task, Level.WARNING, "crlf-script", message, "save it with LF")


RULES: tuple[Rule, ...] = (
    _unsupported,
    _solution,
    _null,
    _budget,
    _exposure,
    _capabilities,
    _host_variables,
    _tests,
    _instruction,
    _line_ends,
)
CONVERSATION_RULES: tuple[Rule, ...] = (
    _unsupported,
    _solution,
    _budget,
    _instruction,
    _said_nowhere,
    _reference_unread,
)
