"""An environment is pinned as an image is: by what it is here, or by what a lock says it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.api.environments import environment_locks, needs_containers, pin_environments
from harness.api.suites import load_suite, require_locked
from harness.formats.lock import LOCK_FILE
from harness.formats.suite import bundled_suites
from harness.formats.suite import load_suite as load_from_disk
from harness.records.environment import EnvironmentFault
from harness.records.errors import AssayError, ConfigError
from tests.integration.world import assay


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bundled suite with the desk's tasks alone, at a place of its own."""
    found = tmp_path / "airline"
    shutil.copytree(bundled_suites()["airline"], found, ignore=shutil.ignore_patterns(LOCK_FILE))
    for file in (found / "tasks").glob("*.toml"):
        if file.name != "desk.toml":
            file.unlink()
    return found


def test_without_a_lock_the_pin_is_what_is_here(folder: Path) -> None:
    open_pins = load_from_disk(folder)
    assert not open_pins.locked
    suite = load_suite(folder)
    assert suite.locked
    assert not needs_containers(suite)
    require_locked(suite)
    assert len({task.image.digest for task in suite.tasks}) == 1
    assert [task.version for task in suite.tasks] == [task.version for task in load_suite(folder).tasks]


def test_a_lock_needs_no_engine_and_holds_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    versions = [task.version for task in load_suite(folder).tasks]
    done = assay("suite", "lock", str(folder), "--json")
    assert (done.code, done.json["images"]) == (0, 1), done.err
    assert [task.version for task in load_suite(folder).tasks] == versions
    lock = json.loads((folder / LOCK_FILE).read_text())
    (reference,) = lock["images"]
    assert lock["images"][reference]["digest"] == environment_locks(load_from_disk(folder))[reference].digest
    wrong = "sha256:" + "0" * 64
    text = (folder / LOCK_FILE).read_text().replace(lock["images"][reference]["digest"], wrong)
    (folder / LOCK_FILE).write_text(text)
    with pytest.raises(AssayError, match=r"is not the environment that was locked|another version"):
        load_suite(folder)


def test_other_data_is_another_environment(folder: Path) -> None:
    before = {task.id: (task.version, task.image.digest) for task in load_suite(folder).tasks}
    database = folder / "desk" / "db.json"
    database.write_text(database.read_text().replace("Order coffee", "Order tea"))
    for task in load_suite(folder).tasks:
        assert task.version != before[task.id][0]
        assert task.image.digest != before[task.id][1]


def test_an_environment_that_cannot_be_opened_is_told_when_it_is_to_be_run(folder: Path) -> None:
    (folder / "desk" / "user_db.json").unlink()
    suite = load_suite(folder)
    assert not suite.locked
    with pytest.raises(EnvironmentFault, match=r"user_db\.json"):
        require_locked(suite)
    done = assay("run", "--suite", str(folder), "--solver", "noop", "--store", str(folder / "store"))
    assert (done.code, "user_db.json" in done.err) == (2, True)


def test_an_environment_that_nobody_knows_is_refused(folder: Path) -> None:
    file = folder / "tasks" / "desk.toml"
    file.write_text(file.read_text().replace("mock@tau2", "mokc@tau2"))
    with pytest.raises(ConfigError, match="mokc@tau2"):
        pin_environments(load_from_disk(folder))
