"""Suites: what is found, what is wrong with all of it, and what is chosen from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.formats import suite as suites
from harness.formats.suite import bundled_suites, find_suite, load_suite, select
from harness.records.errors import ConfigError, LoadErrors, TaskError
from harness.records.suite import Suite

MakeFolder = Callable[..., Path]


@pytest.fixture
def root(make_task: MakeFolder, make_family: MakeFolder, tmp_path: Path) -> Path:
    """A suite with a task at the top, and a task and a family one level down."""
    make_task("suite/words")
    make_task("suite/more/others")
    make_family("suite/more/letters")
    return tmp_path / "suite"


def fault(path: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_suite(path)
    return caught.value


def ids(suite: Suite) -> list[str]:
    return [task.id for task in suite.tasks]


def test_tasks_of_all_levels_and_formats_are_found(root: Path) -> None:
    suite = load_suite(root)
    assert (suite.name, suite.source, suite.locked) == ("suite", str(root), False)
    assert ids(suite) == ["letters/01", "letters/02", "others", "words"]


def test_a_lone_task_or_family_is_a_suite(root: Path) -> None:
    assert ids(load_suite(root / "words")) == ["words"]
    assert ids(load_suite(str(root / "more/letters"))) == ["letters/01", "letters/02"]


def test_hidden_folders_caches_prose_and_empty_folders_are_passed_over(root: Path) -> None:
    for path in (".git/config", "__pycache__/x.pyc", "more/README.md", "LICENSE", ".hidden"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    (root / "empty/inner").mkdir(parents=True)
    assert len(load_suite(root).tasks) == 4


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("odd/data.csv", "known formats: conversation, family, harbor"),
        ("old/task.yaml", "first format"),
        ("typo/tasks.toml", "'tasks.toml'?"),
    ],
)
def test_files_without_a_task_are_an_error(root: Path, path: str, remedy: str) -> None:
    (root / path).parent.mkdir()
    (root / path).write_text("x")
    error = fault(root)
    assert error.place == str((root / path).parent)
    assert remedy in error.remedy


def test_all_faults_of_all_folders_are_told_and_nothing_vanishes(root: Path) -> None:
    (root / "words/instruction.md").unlink()
    (root / "more/letters/tests/test.sh").write_text("~{ x }~")
    settings = root / "more/others/task.toml"
    settings.write_text(settings.read_text().replace("timeout_sec", "timeout_secs").replace("tokens", "token"))
    error = fault(root)
    assert isinstance(error, LoadErrors)
    assert [single.place.removeprefix(f"{root}/") for single in error.errors] == [
        "more/letters/tests/test.sh:1 (variant 01)",
        "more/others/task.toml:7",
        "more/others/task.toml:17",
        "words",
    ]
    assert all(single.place in str(error) for single in error.errors)


def test_duplicate_ids_name_both_places(root: Path, make_task: MakeFolder) -> None:
    make_task("suite/more/words")
    error = fault(root)
    assert error.place == str(root / "words")
    assert str(root / "more/words") in error.message


@pytest.mark.parametrize(
    ("link", "target", "message"),
    [
        ("more/back", "..", "the link leads back to a folder above it"),
        ("itself", ".", "the link leads back to a folder above it"),
        ("more/beside", "../words", "the link leads to another folder of the suite, words"),
        ("loop", "loop", "the link leads nowhere, or to itself"),
        ("away", "/usr", "the link leads out of the suite"),
    ],
)
def test_a_link_to_a_folder_is_named_and_not_followed(root: Path, link: str, target: str, message: str) -> None:
    (root / link).symlink_to(target)
    error = fault(root)
    assert (error.place, error.message.startswith(message)) == (str(root / link), True)


def test_a_web_of_links_is_no_endless_walk(root: Path) -> None:
    # Each folder links to all others and up: followed, they would be more paths than atoms.
    folders = [root / f"web-{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
        (folder / "up").symlink_to("..")
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(f"../{other.name}")
    code = "import sys; from harness.formats.lint import lint; print(len(lint(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, timeout=60, check=True)
    assert int(done.stdout) > 12 * 13


def test_deep_folders_are_walked_to_the_end(tmp_path: Path) -> None:
    deep = tmp_path / "d"
    for _ in range(1500):
        deep.mkdir()
        deep = deep / "d"
    error = fault(tmp_path)
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # shutil's own removal goes only so deep
    assert "no task folder here" in error.message


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        ((), "give the folder of a task, a family or a suite"),
        (("notes/a.txt", "code/b.py"), "give the folder of a task, a family or a suite"),
        (("one/suite.toml", "two/suite.lock", "code/b.py"), "give a suite by its own path: {}/one, {}/two"),
        (("task.yaml", "solution/solve.sh"), "{}: this is Terminal-Bench's first format"),
        (("mine/tasks.toml",), "{}/mine: did you mean 'tasks.toml'?"),
    ],
)
def test_a_folder_that_is_no_suite_is_one_error_that_says_what_was_looked_for(
    tmp_path: Path, files: tuple[str, ...], remedy: str
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    error = fault(tmp_path)
    assert not isinstance(error, LoadErrors)
    assert "has a task.toml, a variants.toml or a conversation.toml" in error.message
    assert error.remedy.startswith(remedy.replace("{}", str(tmp_path)))


def test_a_suite_within_a_suite_is_an_error_of_its_own(root: Path) -> None:
    (root / "more" / "suite.toml").write_text("")
    error = fault(root)
    assert (error.place, error.message) == (str(root / "more"), "a suite within a suite")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbf[agent]\n", "task.toml:1: a byte order mark"),
        (b"[metadata]\nx = " + b"[" * 5000 + b"]" * 5000, "task.toml: bad TOML: nested too deeply"),
    ],
)
def test_toml_that_cannot_be_read_is_placed(root: Path, content: bytes, message: str) -> None:
    (root / "words" / "task.toml").write_bytes(content)
    assert message in str(fault(root))


def test_suite_settings(root: Path) -> None:
    (root / "suite.toml").write_text('name = "mine"\ndescription = "d"\n')
    assert load_suite(root).name == "mine"
    (root / "suite.toml").write_text('nam = "mine"\n')
    error = fault(root)
    assert error.place == str(root / "suite.toml")
    assert "nam" in error.message
    (root / "suite.toml").write_text("name = \n")
    assert fault(root).place == f"{root / 'suite.toml'}:1"


def test_a_suite_that_is_not_there_has_near_matches(root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_suite(str(root.parent / "suit"))
    assert "'suite'" in caught.value.remedy
    with pytest.raises(ConfigError, match="this is a file"):
        find_suite(root / "words/task.toml")


def test_bundled_suites_come_by_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "terminal" in bundled_suites()
    monkeypatch.setattr(suites, "bundled_suites", lambda: {"words": root / "more"})
    monkeypatch.chdir(root)
    assert find_suite("words") == root / "more"
    assert find_suite("./words") == Path("words")
    with pytest.raises(ConfigError) as caught:
        find_suite("wrods")
    assert "'words'" in caught.value.remedy


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], ["letters/01", "letters/02", "others", "words"]),
        (["words"], ["words"]),
        (["letters"], ["letters/01", "letters/02"]),
        (["*/02", "o*"], ["letters/02", "others"]),
        (["words", "letters/*"], ["letters/01", "letters/02", "words"]),
    ],
)
def test_selection_keeps_the_suites_order(root: Path, patterns: list[str], chosen: list[str]) -> None:
    suite = load_suite(root)
    assert ids(select(suite, patterns)) == chosen
    assert (select(suite, patterns).version == suite.version) is (len(chosen) == 4)


def test_a_pattern_that_matches_nothing_has_near_matches(root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        select(load_suite(root), ["words", "leters/01"])
    assert "'leters/01'" in caught.value.message
    assert "letters/01" in caught.value.remedy
