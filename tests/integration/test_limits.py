"""Floods of output, bytes that are no text, memory and disk in the container, and a host disk that is full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store.sqlite import SqliteStore

from .model_service import ModelService
from .world import CHECK, OBEDIENT, RIGHT, TALKATIVE, Started, TaskFiles, World, held_for

pytestmark = pytest.mark.docker

FLOOD_BYTES = 200_000_000
MEASURED = (
    sys.executable,
    "-c",
    "import atexit, sys\n"
    "from pathlib import Path\n"
    "from harness.cli import main\n"
    "report = Path(sys.argv.pop(1))\n"
    "atexit.register(lambda: report.write_text(Path('/proc/self/status').read_text()))\n"
    "main()",
)


def test_floods_of_output_are_cut_and_do_not_grow_the_coordinator(world: World, tmp_path: Path) -> None:
    flood = f"head -c {FLOOD_BYTES} /dev/zero"
    world.tasks(agent=TaskFiles(f"{flood}\n{flood} >&2\n" + RIGHT), grader=TaskFiles(check=f"{flood}\n" + CHECK))
    report = tmp_path / "status"
    with Started(world, str(report), *world.run_options(), "--json", program=MEASURED) as started:
        done = started.end()
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 2), done.err
    by_task = {trial["task"]: trial for trial in done.json["trials"]}
    out, err, _ = world.events(by_task["agent"]["trial"], "exec")
    for stream in (out["stdout"], err["stderr"]):
        assert (stream["seen_bytes"], stream["truncated"]) == (FLOOD_BYTES, True)
        assert 0 < stream["kept_bytes"] <= 1_048_576
    assert any(f"of {FLOOD_BYTES} bytes kept" in flag for flag in by_task["grader"]["flags"])
    peak_kb = int(report.read_text().partition("VmHWM:")[2].split()[0])
    assert peak_kb < 150 * 1024


def test_bytes_that_are_no_text_are_kept_everywhere(world: World, service: ModelService, tmp_path: Path) -> None:
    script = b"@chat\nprintf 'out \\377\\376' ; printf '\\200 err' >&2 # \xff\xfe\n"
    script += b"printf 'body \\377' > \"$(printf '/app/name-\\377\\351')\"\n" + RIGHT.encode()
    world.tasks(
        bytes=TaskFiles(script, check="printf 'grader \\377\\n'; ls /app\n" + CHECK, artifacts='artifacts = ["/app"]')
    )
    done = world.run(TALKATIVE, *service.options(tmp_path))
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 1), done.err
    trial = done.json["trials"][0]["trial"]
    text = service.asked[0]["messages"][0]["content"]
    assert text.encode("utf-8", "surrogateescape") == script
    shown = world.on_store("trial", trial)
    assert shown.code == 0, shown.err
    kinds = ("--kind", "seal", "--kind", "exec", "--kind", "grade")
    events = world.on_store("trial", trial, *kinds, "--json").json["events"]
    kept = {name: digest for event in events for name, digest in event["blobs"].items()}
    with SqliteStore(world.store) as store:
        assert store.blob(kept["artifact:/app"]).count(b"app/name-\xff\xe9") == 1
        assert b"body \xff" in store.blob(kept["artifact:/app"])
        bodies = [store.blob(events[0]["blobs"][name]) for name in ("stdout", "stderr")]
        assert bodies == [b"out \xff\xfe", b"\x80 err"]
        assert store.blob(kept["stdout"]).startswith(b"grader \xff\nanswer\nname-\xff\xe9\n")
    for command in ("show", "export", "runs"):
        assert world.on_store(command).code == 0
    assert world.verified()


def test_memory_and_disk_are_named_with_their_limits(world: World) -> None:
    world.tasks(
        memory=TaskFiles("python3 -c 'x = bytearray(400 << 20)'\n", environment="memory_mb = 64"),
        disk=TaskFiles(
            "for i in 1 2 3 4; do head -c 5000000 /dev/zero > /app/f$i; done\n", environment="storage_mb = 10"
        ),
        one_file=TaskFiles("head -c 20000000 /dev/zero > /app/f\n", environment="storage_mb = 10"),
        grader_memory=TaskFiles(check="exec python3 -c 'x = bytearray(400 << 20)'\n", environment="memory_mb = 64"),
    )
    done = world.run()
    found = {trial["task"]: trial for trial in done.json["trials"]}
    assert done.code == 3
    assert {task: (trial["outcome"], trial["reason"]) for task, trial in found.items()} == {
        "memory": ("failed", "limit.memory"),
        "disk": ("failed", "limit.disk"),
        "one-file": ("failed", "limit.disk"),
        "grader-memory": ("ungraded", "grader.memory"),
    }
    assert any("64 MB" in flag for flag in found["memory"]["flags"])
    assert any("limit 10 MB" in flag for flag in found["disk"]["flags"])
    assert "64 MB" in found["grader-memory"]["detail"]
    (one_file,) = world.events(found["one-file"]["trial"], "exec")
    assert one_file["exit_code"] != 0  # the file was not let grow past the limit
    (memory,) = world.events(found["memory"]["trial"], "exec")
    assert memory["memory_killed"]


@pytest.fixture
def small_disk(world: World) -> Path:
    """The store's folder on a disk of its own with 3 MB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a file system")
    world.store.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(world.store)]
    mounted = subprocess.run(mount, capture_output=True, text=True, timeout=60, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    return world.store


def test_a_full_disk_of_the_host_is_one_clear_error_and_the_store_stays_whole(world: World, small_disk: Path) -> None:
    try:
        big = "head -c 900000 /dev/urandom\n"
        world.tasks(a_small=TaskFiles(), b_big=TaskFiles(big * 6 + RIGHT), c_small=TaskFiles())
        done = world.run(OBEDIENT, "--concurrency", "1")
        assert done.code == 2
        assert "the disk is full" in done.err
        assert "resume" in done.err
        assert "Traceback" not in done.err
        run = world.trials()[0].run
        assert not held_for(run)
        assert world.verified(run)
        rows = {row.task: row.result.outcome if row.result else None for row in world.trials(run)}
        assert rows == {"a-small": "passed", "b-big": None}

        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True, timeout=60)
        resumed = world.on_store("resume", run, "--json")
        assert (resumed.code, resumed.json["outcomes"]["passed"]) == (0, 3), resumed.err
        assert world.verified(run)
    finally:
        subprocess.run(["umount", "--lazy", str(small_disk)], check=True, timeout=60)
