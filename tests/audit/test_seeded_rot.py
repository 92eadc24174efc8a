"""Ten kinds of rot in a copy of bundled families, on the real engine: the audit names each with the right reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.api.audit_request import AuditRequest
from harness.api.audit_views import explain_task, status
from harness.api.audits import audit
from harness.formats.lock import LOCK_FILE, make_lock, write_lock
from harness.formats.suite import bundled_suites, load_suite
from harness.records.audit import AlertKind, Cause
from harness.records.suite import ImageLock
from harness.records.task import ImagePin

from ..sandbox.conftest import base_pin as base_pin  # the same engine, the same image

pytestmark = [pytest.mark.docker, pytest.mark.slow]
NOWHERE = "sha256:" + "0" * 64
FLAKY_RUNS = 14  # a fair coin falls alike so often once in 8,000 times


@dataclass
class Copy:
    """One variant of each of ten families, each with its own image reference, so that each can be pinned apart."""

    folder: Path
    base: str
    pins: dict[str, ImageLock] = field(default_factory=dict)

    def take(self, family: str) -> None:
        shutil.copytree(bundled_suites()["terminal"] / family, self.folder / family)
        variants = self.file(family, "variants.toml")
        head, first, rest = variants.read_text().partition('id = "01"')
        tail = rest.split("\n[[variant]]")[0] if "[[variant]]" in head else rest.split("\n")[0] + "\n]"
        variants.write_text(head + first + tail + "\n")
        self.edit(family, "task.toml", lambda text: text.replace("assay-base:1", f"{family}:1"))
        self.pins[f"{family}:1"] = ImageLock(digest=self.base, platform="linux/amd64")

    def file(self, family: str, name: str) -> Path:
        return self.folder / family / name

    def edit(self, family: str, name: str, change: Callable[[str], str]) -> None:
        before = self.file(family, name).read_text()
        after = change(before)
        assert after != before, (family, name)
        self.file(family, name).write_text(after)

    def pin(self, family: str, digest: str, platform: str = "linux/amd64") -> None:
        self.pins[f"{family}:1"] = ImageLock(digest=digest, platform=platform)

    def lock(self) -> None:
        write_lock(self.folder / LOCK_FILE, make_lock(load_suite(self.folder, ignore_lock=True), self.pins))


@pytest.fixture
def moved_image(base_pin: ImagePin) -> Iterator[str]:
    """The base image after a dependency moved: its jq is gone."""
    with docker.APIClient(version="auto", timeout=60) as client:
        made = client.create_container(base_pin.digest, ["rm", "/usr/bin/jq"], network_disabled=True)["Id"]
        try:
            client.start(made)
            assert client.wait(made)["StatusCode"] == 0
            image = client.commit(made)["Id"]
        finally:
            client.remove_container(made, force=True)
        yield image
        client.remove_image(image, force=True)


@pytest.fixture
def copy(tmp_path: Path, base_pin: ImagePin) -> Copy:
    """Sound, with allowances that fit."""
    assert base_pin.digest is not None
    made = Copy(tmp_path / "rotting", base_pin.digest)
    for family in (
        *("json-reshape", "csv-join", "config-merge", "regex-extract", "text-dedupe", "date-normalise"),
        *("encoding-convert", "csv-aggregate", "error-timeline", "sqlite-query"),
    ):
        made.take(family)
    made.edit("csv-join", "task.toml", lambda text: text.replace("[assay]\n", "[assay]\nsetup_sec = 8.0\n"))
    hungry = "python3 -c 'b\"x\" * (150 << 20)' || exit 1\n"
    made.edit("config-merge", "solution/solve.sh", lambda text: hungry + text)
    made.lock()
    return made


def rot(copy: Copy, moved_image: str) -> None:
    copy.pin("json-reshape", moved_image)  # a dependency moved
    copy.edit("csv-join", "environment/setup.sh", lambda text: f"sleep 60\n{text}")  # a mirror got slower
    copy.edit("config-merge", "task.toml", lambda text: text.replace("memory_mb = 512", "memory_mb = 96"))
    copy.edit("regex-extract", "tests/test.sh", lambda text: text.replace("python3 /tests/check.py", LOOSE))
    solve = copy.file("text-dedupe", "solution/solve.sh").read_text()
    copy.edit("text-dedupe", "environment/setup.sh", lambda text: f"{text}\ncd /app\n{solve}")  # the fix is planted
    copy.edit("date-normalise", "instruction.md", lambda text: f"{text}\nThe order of the rows does not matter.\n")
    copy.edit("encoding-convert", "tests/test.sh", lambda text: text.replace("exit 0", f"{COIN}\nexit 0"))
    copy.pin("csv-aggregate", NOWHERE)
    copy.edit("error-timeline", "tests/check.py", lambda text: text + "\nsys.exit('a rule that nobody was told')\n")
    copy.pin("sqlite-query", copy.base, "linux/arm64")
    copy.lock()


LOOSE = 'test -n "$(find /app -newer /app/notes.txt -type f)"'
COIN = "[ $((RANDOM % 2)) = 0 ] && echo 0 > /logs/verifier/reward.txt"


def test_each_kind_of_rot_is_named(copy: Copy, moved_image: str, tmp_path: Path) -> None:
    def request(**changes: Any) -> AuditRequest:
        return AuditRequest(suite=str(copy.folder), store=str(tmp_path / "store"), mutants=1, **changes)

    asked = request()
    sound = audit(request(sentinels=("gold",)))
    gold = {found.task: found.cause for found in status(asked).unavailable if found.trials and found.cause}
    assert gold == dict.fromkeys(gold, Cause.NEVER), "gold must pass before anything rots"
    assert sound.tasks == 10

    rot(copy, moved_image)
    audit(request(sentinels=("gold",), tasks=("encoding-convert",), repeat=FLAKY_RUNS))
    report = audit(request(changed=True, tasks=("[!e]*", "error-timeline")))

    found = status(asked)
    causes = {one.task.partition("/")[0]: one.cause for one in found.unavailable}
    assert causes == {
        "json-reshape": Cause.TESTS_FAILED,
        "csv-join": Cause.ALLOWANCE,
        "config-merge": Cause.ALLOWANCE,
        "regex-extract": Cause.MUTANT_PASSED,
        "text-dedupe": Cause.NULL_PASSED,
        "encoding-convert": Cause.FLAKY,
        "csv-aggregate": Cause.IMAGE_MISSING,
        "error-timeline": Cause.TESTS_FAILED,
        "sqlite-query": Cause.WRONG_PLATFORM,
    }
    details = {one.task.partition("/")[0]: one.detail for one in found.unavailable}
    assert details["csv-join"].startswith("setup: used 8.")
    assert details["config-merge"].startswith("memory: used ")
    changed = {family: explain_task(asked, f"{family}/01").changed for family in ("json-reshape", "error-timeline")}
    assert changed == {"json-reshape": ("image",), "error-timeline": ("tests",)}
    words = [alert.finding.subject for alert in report.standing if alert.finding.kind is AlertKind.WORDING]
    assert "date-normalise/01" in words
    assert found.achievable == 1  # the task of which only the words changed
