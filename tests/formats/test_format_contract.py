"""What every task format promises."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.formats.family import FamilyFormat
from harness.formats.harbor import HarborFormat
from harness.protocols import TaskFormat
from harness.records.errors import TaskError

MakeFolder = Callable[..., Path]
FORMATS: tuple[TaskFormat, ...] = (HarborFormat(), FamilyFormat())


@pytest.fixture(params=FORMATS, ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> TaskFormat:
    found: TaskFormat = request.param
    return found


@pytest.fixture
def folder(form: TaskFormat, make_task: MakeFolder, make_family: MakeFolder) -> Path:
    return make_task() if form.name == "harbor" else make_family()


def test_it_recognises_its_own_folders_only(form: TaskFormat, folder: Path, tmp_path: Path) -> None:
    assert form.recognises(folder)
    assert [other.name for other in FORMATS if other.recognises(folder)] == [form.name]
    assert not form.recognises(tmp_path)
    assert not form.recognises(tmp_path / "gone")


def test_a_tasks_version_depends_on_its_content_alone(form: TaskFormat, folder: Path, tmp_path: Path) -> None:
    versions = [task.version for task in form.load(folder)]
    assert versions == [task.version for task in form.load(folder)]
    moved = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, moved)
    assert versions == [task.version for task in form.load(moved)]


@pytest.mark.parametrize(
    "path", ["instruction.md", "solution/solve.sh", "tests/test.sh", "tests/want", "environment/files/words.txt"]
)
def test_a_change_of_any_file_is_another_version(form: TaskFormat, folder: Path, path: str) -> None:
    before = [task.version for task in form.load(folder)]
    with (folder / path).open("ab") as file:
        file.write(b"\n")
    after = [task.version for task in form.load(folder)]
    assert not set(before) & set(after)


@pytest.mark.parametrize(
    ("old", "new"), [("timeout_sec = 60.0", "timeout_sec = 61"), ("tokens = 1000", "tokens = 999"), (":1", ":2")]
)
def test_a_change_of_a_budget_or_the_image_is_another_version(
    form: TaskFormat, folder: Path, old: str, new: str
) -> None:
    before = [task.version for task in form.load(folder)]
    settings = folder / "task.toml"
    settings.write_text(settings.read_text().replace(old, new, 1))
    assert not set(before) & {task.version for task in form.load(folder)}


def test_a_malformed_folder_is_an_error_with_a_place(form: TaskFormat, folder: Path) -> None:
    settings = folder / "task.toml"
    settings.write_text(settings.read_text() + "[nonsense]\n")
    with pytest.raises(TaskError) as caught:
        form.load(folder)
    assert caught.value.place.startswith(f"{folder}/task.toml:")
