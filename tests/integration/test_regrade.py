"""Containers graded again, end to end: other tests over what was sealed, what was deleted is gone, damage is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.store.sqlite import SqliteStore

from .world import CHECK, OBEDIENT, RIGHT, TaskFiles, World

pytestmark = pytest.mark.docker

STRICT = CHECK.replace("42", "43")
FRESH = TaskFiles(verifier='timeout_sec = 60.0\nenvironment_mode = "separate"', artifacts='artifacts = ["/app/answer"]')
UPHEAVAL = (
    RIGHT + "rm /usr/bin/md5sum; rm -r /etc/skel; chmod 600 /app/answer; ln -s answer /app/link; mkdir -p /srv/a/b\n"
    "mkfifo /app/pipe; echo more >> /etc/issue; chmod 700 /etc/apt; echo x > /etc/apt/x\n"
)
ALL_THERE = """\
set -e
[ ! -e /usr/bin/md5sum ]
[ ! -e /etc/skel ]
[ "$(stat -c %a /app/answer)" = 600 ]
[ "$(readlink /app/link)" = answer ]
[ -d /srv/a/b ]
[ -p /app/pipe ]
[ "$(stat -c %a /etc/apt)" = 700 ]
[ "$(tail -n 1 /etc/issue)" = more ]
"""


def test_other_tests_judge_what_was_sealed(world: World, tmp_path: Path) -> None:
    world.tasks(same=TaskFiles(), fresh=FRESH, upheaval=TaskFiles(UPHEAVAL, check=ALL_THERE + CHECK))
    done = world.run(OBEDIENT)
    assert done.json["outcomes"]["passed"] == 3, done.err
    again = world.on_store("regrade", "latest", "--json")
    assert again.json["outcomes"]["passed"] == 3, again.out
    assert (again.code, again.json["moved"]) == (0, 0)
    strict = tmp_path / "strict"
    shutil.copytree(world.suite, strict)
    for script in strict.glob("*/tests/test.sh"):
        script.write_text(STRICT)
    moved = world.on_store("regrade", "latest", "--suite", str(strict), "--json")
    assert moved.json["outcomes"]["failed"] == moved.json["moved"] == 3, moved.out
    assert moved.json["grades"][0]["why"] == "tests changed: test.sh"
    assert world.verified()
    assert world.on_store("show", "latest", "--json").json["outcomes"]["passed"] == 3


def test_a_blob_that_was_changed_gives_no_grade(world: World) -> None:
    world.tasks(same=TaskFiles())
    world.run(OBEDIENT)
    (trial,) = world.trials()
    with SqliteStore(world.store) as store:
        (seal,) = store.events(trial.trial, ["seal"])
    digest = seal.blobs["change:/"].removeprefix("sha256:")
    blob = next(path for path in world.store.rglob(digest[2:]) if path.is_file())
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes().replace(b"42", b"43"))
    again = world.on_store("regrade", "latest", "--json")
    (grade,) = again.json["grades"]
    assert (again.code, grade["grade"]["outcome"], grade["grade"]["reason"]) == (3, "invalid", "evidence.damaged")
