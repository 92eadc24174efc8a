"""`--changed`: a fingerprint decides what is run, not a date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.api.audit_glance import stamp_of
from harness.api.audit_views import status
from harness.audit.fingerprint import tree_stamp
from harness.records.audit import Sentinel
from harness.records.base import sha256_of
from harness.report.audits import status_text

from .worlds import Files, Laboratory

pytestmark = pytest.mark.anyio


@pytest.fixture
def audited(laboratory: Laboratory) -> Laboratory:
    laboratory.write({name: Files() for name in ("a", "b", "c")})
    return laboratory


async def test_nothing_changed_runs_nothing(audited: Laboratory) -> None:
    first = await audited.audit()
    again = await audited.audit(changed=True)
    assert first.cycle is not None
    assert (again.cycle, again.audited, again.achievable) == (None, {}, 3)


async def test_only_what_changed_is_run_and_the_rest_is_carried_over(audited: Laboratory) -> None:
    await audited.audit()
    Files(wall_s=60.0).write(audited.suite / "b")
    audited.lock()
    report = await audited.audit(changed=True)
    assert report.audited == {"b": "changed: allowances"}
    assert report.cycle is not None
    assert [(run.sentinel, run.tasks) for run in report.cycle.runs] == [(Sentinel.GOLD, 1), (Sentinel.NULL, 1)]
    assert report.achievable == 3


async def test_a_change_back_to_a_known_green_state_runs_nothing_and_says_so(audited: Laboratory) -> None:
    await audited.audit()
    Files(wall_s=60.0).write(audited.suite / "b")
    audited.lock()
    await audited.audit(changed=True)
    Files().write(audited.suite / "b")
    audited.lock()
    report = await audited.audit(changed=True)
    assert report.audited == {}
    assert report.notes == {"b": "back to a state that was audited on 2026-03-01"}
    assert report.cycle is not None  # the suite's version is another one: it gets its own table
    assert report.achievable == 3


async def test_what_is_red_stale_or_lost_its_image_is_run_again(audited: Laboratory) -> None:
    audited.gone.add("base:1")
    await audited.audit()
    audited.gone.clear()
    mended = await audited.audit(changed=True)
    assert set(mended.audited.values()) == {"not green"}
    assert mended.achievable == 3
    audited.gone.add("base:1")
    assert set((await audited.audit(changed=True)).audited.values()) == {"image missing"}
    audited.gone.clear()
    await audited.audit(changed=True)
    audited.pass_time(days=20)
    stale = await audited.audit(changed=True)
    assert set(stale.audited.values()) == {"stale: last audited 2026-03-01"}
    assert stale.achievable == 3


async def test_the_grader_back_at_known_code_brings_back_what_it_found(
    audited: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await audited.audit()
    with monkeypatch.context() as patched:
        patched.setattr("harness.plugins.code_digest", lambda code: sha256_of(b"another grader"))
        audited.flips = 1
        assert (await audited.audit(changed=True)).achievable == 0
    audited.flips = 0
    report = await audited.audit(changed=True)
    assert (report.audited, report.achievable) == ({}, 3)
    assert set(report.notes.values()) == {"back to a state that was audited on 2026-03-01"}


@pytest.fixture
def old_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are of an age at which their times can be relied on."""
    monkeypatch.setattr("harness.audit.fingerprint.RACY_NS", -1_000_000_000)


def refuse(*given: object) -> None:
    raise AssertionError("the suite was loaded")


@pytest.mark.usefixtures("old_files")
async def test_an_untouched_suite_is_not_even_loaded(audited: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    await audited.audit()
    # The store is in memory, so its folder is not there to be found: stand in for it.
    monkeypatch.setattr("harness.api.audit_glance.has_store", lambda folder: True)
    with monkeypatch.context() as patched:
        patched.setattr("harness.api.audit_state.load_suite", refuse)
        assert (await audited.audit(changed=True)).cycle is None
        audited.gone.add("base:1")
        with pytest.raises(AssertionError, match="was loaded"):
            await audited.audit(changed=True)
        audited.gone.clear()
        (audited.suite / "a" / "instruction.md").write_text("Write the answer. Task number 0")  # same words, new file
        with pytest.raises(AssertionError, match="was loaded"):
            await audited.audit(changed=True)
    assert status(audited.request()).written_since
    assert "files were written since" in status_text(status(audited.request()))
    assert (await audited.audit(changed=True)).cycle is None
    assert not status(audited.request()).written_since
    monkeypatch.setattr("harness.api.audit_state.load_suite", refuse)
    assert (await audited.audit(changed=True)).cycle is None  # the new file is known by now


async def test_files_that_were_just_written_are_read(audited: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second write within the same tick of the clock would keep every time and size."""
    monkeypatch.setattr("harness.audit.fingerprint.RACY_NS", 3600 * 10**9)
    await audited.audit()
    found = status(audited.request())
    assert found.written_since is None
    assert "whether they were written since" in status_text(found)
    monkeypatch.setattr("harness.api.audit_glance.has_store", lambda folder: True)
    monkeypatch.setattr("harness.api.audit_state.load_suite", refuse)
    with pytest.raises(AssertionError, match="was loaded"):
        await audited.audit(changed=True)


@pytest.mark.usefixtures("old_files")
def test_a_stamp_sees_an_edit_that_keeps_size_and_time_and_a_folder_that_moved_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "suite" / "a" / "instruction.md"
    file.parent.mkdir(parents=True)
    file.write_text("five")
    before, times = tree_stamp(tmp_path / "suite", {}), file.stat()
    assert before is not None
    (tmp_path / "suite").rename(tmp_path / "moved")
    assert tree_stamp(tmp_path / "moved", {}) == before
    file = tmp_path / "moved" / "a" / "instruction.md"
    file.write_text("nine")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert tree_stamp(tmp_path / "moved", {}) != before
    (tmp_path / "moved" / "link").symlink_to("nowhere")
    assert tree_stamp(tmp_path / "moved", {}) is None


@pytest.mark.usefixtures("old_files")
def test_a_lone_task_has_the_stamp_of_the_lock_around_it(audited: Laboratory) -> None:
    before = stamp_of(audited.suite / "a")
    assert before == stamp_of(audited.suite / "a")
    audited.images["base:1"] = "sha256:" + "cd" * 32
    audited.lock()
    assert stamp_of(audited.suite / "a") != before


def test_a_glance_loads_no_arrays() -> None:
    """Two seconds for 5,000 tasks leave no time for numpy, scipy, pandas or a plot."""
    code = "import sys, harness.cli.audit, harness.api.audit_glance; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "pandas", "matplotlib", "harness.api.runs"} & set(done.stdout.split())
