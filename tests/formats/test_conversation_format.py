"""Conversation tasks on disk: what a task inherits, its mutants, what makes another version, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.formats.conversation import ConversationFormat
from harness.formats.lint import lint
from harness.mutations.declared import apply_mutation
from harness.records.errors import LoadErrors, TaskError
from harness.records.task import Task
from tests.formats.conftest import write_files

COMMON = """\
schema_version = "1"
environment = "counter@1"
mode = "normal"
data_folder = "data"
policy = "policy.md"
tags = ["talk"]

[budget]
timeout_sec = 60.0
steps = 9

[user]
patience = 1

[user.facts]
detail = "shared"
who = "nobody"

[[user.rule]]
when = "has been"
say = "Bye, said {who}."
ends = true
"""
TASKS = """\
[[task]]
id = "01"
outputs = ["12"]
answer = "It has been done: 12."

[task.user]
opening = "Please add {detail}."

[task.user.facts]
who = "Ada"

[[task.user.rule]]
when = ["how much", "what"]
say = ["12", "Twelve."]

[[task.action]]
name = "show"
read = true

[[task.action]]
name = "add"
arguments = { by = 12 }

[[task.forbidden]]
name = "add"
arguments = { by = -1 }

[[task]]
id = "02"
mode = "solo"
"""
SECOND = TASKS.count("\n", 0, TASKS.index('id = "02"'))  # the line of the second [[task]]
GOOD = TASKS.partition('\n[[task]]\nid = "02"')[0]
FILES = {
    "conversation.toml": COMMON,
    "policy.md": "Be kind.\n",
    "tasks/sums.toml": GOOD,
    "data/db.json": "{}\n",
    "suite.toml": 'name = "talks"\n',
}
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(**files: str) -> Path:
        named = {path.replace("__", "/").replace("_toml", ".toml"): text for path, text in files.items()}
        return write_files(tmp_path / "talks", {**FILES, **named})

    return made


def only(folder: Path) -> Task:
    (task,) = ConversationFormat().load(folder)
    return task


def steps(task: Task) -> list[dict[str, object]]:
    (file,) = task.solution.files.files
    return [json.loads(line) for line in file.content.splitlines()]


def test_a_task_is_what_it_says_over_its_file_over_its_folder(make: Make) -> None:
    task = only(make())
    talk = task.conversation
    assert talk is not None
    assert talk.user is not None
    assert (task.id, task.family, task.instruction, task.tags) == ("sums/01", "sums", "Be kind.", ("talk",))
    assert (task.budget.wall_s, task.budget.steps, task.grading.grader) == (60.0, 9, "conversation@1")
    assert talk.user.facts == {"detail": "shared", "who": "Ada"}
    assert [rule.when for rule in talk.user.rules] == [("how much", "what"), ("has been",)]
    assert talk.user.patience == 1
    assert [action.name for action in talk.actions] == ["show", "add"]
    assert task.image.reference.startswith("environment:counter@1#")


def test_the_reference_acts_and_then_answers_and_every_demand_has_a_mutant(make: Make) -> None:
    task = only(make())
    assert steps(task) == [
        {"call": "show", "arguments": {}},
        {"call": "add", "arguments": {"by": 12}},
        {"say": "It has been done: 12."},
    ]
    made = {
        mutation.name: apply_mutation(task.solution, mutation).files.files[0].content.decode()
        for mutation in task.mutations
    }
    assert made.keys() == {"leaves out add", "does not say 12", "does add"}
    assert '"by": 12' not in made["leaves out add"]
    assert "12." not in made["does not say 12"]
    assert '"by": 12' in made["does not say 12"]
    assert made["does add"].splitlines()[-2] == '{"call": "add", "arguments": {"by": -1}}'


@pytest.mark.parametrize("path", ["conversation.toml", "policy.md", "tasks/sums.toml", "data/db.json"])
def test_another_byte_that_counts_is_another_version(make: Make, path: str, tmp_path: Path) -> None:
    folder = make()
    before = only(folder).version
    moved = tmp_path / "elsewhere" / "other-name"
    shutil.copytree(folder, moved)
    assert only(moved).version == before
    file = folder / path
    file.write_text(file.read_text().replace("12", "13").replace("kind", "brief").replace("= 9", "= 8") + " ")
    assert only(folder).version != before


@pytest.mark.parametrize(
    ("files", "line", "message"),
    [
        ({"tasks__sums_toml": GOOD.replace("outputs", "output")}, 3, "task[0].output"),
        ({"tasks__sums_toml": GOOD.replace("{detail}", "{detial}")}, 1, "speaks of {detial}"),
        ({"tasks__sums_toml": GOOD.replace("done: 12", "done")}, 1, "never says '12'"),
        ({"tasks__sums_toml": GOOD.replace('name = "add"\narguments = { by = 12 }', 'name = "add"\nread = true')}, 1,
         "no action changes anything"),
        ({"tasks__sums_toml": TASKS}, SECOND + 2, "task[1].mode: unknown key"),
        ({"tasks__sums_toml": TASKS.replace('mode = "solo"\n', "")}, SECOND, "neither a user nor a ticket"),
        ({"tasks__sums_toml": GOOD.replace("[task.user]", "[task.user")}, 6, "bad TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_and_line(make: Make, files: dict[str, str], line: int, message: str) -> None:
    folder = make(**files)
    with pytest.raises(TaskError) as caught:
        ConversationFormat().load(folder)
    errors = caught.value.errors if isinstance(caught.value, LoadErrors) else (caught.value,)
    assert [error for error in errors if message in str(error) and f"sums.toml:{line}" in error.place], errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("data_folder = \"data\"", "data_folder = \"../else\""), "is no folder of the suite"),
        (("policy = \"policy.md\"", "policy = \"none.md\""), "cannot be read"),
        (("mode = \"normal\"\n", ""), "mode is missing"),
        (("schema_version = \"1\"", "schema_version = \"2\""), "schema_version"),
    ],
)  # fmt: skip
def test_what_is_wrong_for_all_is_said_too(make: Make, change: tuple[str, str], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        ConversationFormat().load(make(conversation_toml=COMMON.replace(*change)))


def test_a_folder_without_tasks_is_an_error(make: Make) -> None:
    folder = make()
    (folder / "tasks" / "sums.toml").unlink()
    with pytest.raises(TaskError, match="holds no file of tasks"):
        ConversationFormat().load(folder)


def test_lint_says_what_a_conversation_lacks_and_nothing_of_containers(make: Make) -> None:
    endless = COMMON.partition("[[user.rule]]")[0]
    told = GOOD.replace("Please add {detail}.", "Please add 12.")
    codes = {finding.code for finding in lint(make(conversation_toml=endless, tasks__sums_toml=told))}
    assert {"user-never-ends", "output-shown"} <= codes
    assert not codes & {"grading-shared", "capabilities-default", "image-unlocked"}
