"""What the seal finds changed."""

from __future__ import annotations

import pytest

from harness.runner.sealing import replaced_programs


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("C /usr", "C /usr/bin", "A /usr/bin/new-tool", "A /app/answer", "D /app/bin/bash", "C /etc/passwd"),
        ("C /usr/bin/sub/bash", "C /opt/bin/bash"),
        (
            "C /usr",
            "C /usr/local",
            "C /usr/local/lib",
            "A /usr/local/lib/tool.py",
            "A /usr/lib/new.so",
            "A /etc/x.conf",
        ),
    ],
)
def test_ordinary_work_is_not_flagged(changes: tuple[str, ...]) -> None:
    assert replaced_programs(changes) == []


def test_programs_that_were_replaced_or_removed_are_named() -> None:
    changes = ("C /usr/bin/bash", "D /usr/local/bin/python3", "A /etc/ld.so.preload", "C /usr/bin/a name")
    (flag,) = replaced_programs(changes)
    assert flag == (
        "programs are not the image's: /etc/ld.so.preload, /usr/bin/a name, /usr/bin/bash, /usr/local/bin/python3"
    )


@pytest.mark.parametrize(
    "change",
    [
        "A /usr/local/bin/grep",  # found before /usr/bin/grep
        "A /usr/sbin/grep",
        "C /usr/lib/x86_64-linux-gnu/libc.so.6",
        "D /lib/x86_64-linux-gnu/libtinfo.so.6",
        "A /usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2/libc.so.6",
        "C /etc/ld.so.cache",
        "C /usr/lib/python3.11/json/__init__.py",
        "A /usr/lib/python3/dist-packages/sitecustomize.py",
        "A /root/.local/lib/python3.11/site-packages/usercustomize.py",
        "A /usr/local/lib/python3.11/dist-packages/x.pth",
    ],
)
def test_what_the_tests_tools_load_and_what_stands_before_them_is_named(change: str) -> None:
    path = change[2:]
    folders = [f"C {path[:at]}" for at in range(1, len(path)) if path[at] == "/"]
    assert replaced_programs((*folders, change)) == [f"programs are not the image's: {path}"]


def test_many_are_counted() -> None:
    (flag,) = replaced_programs(f"D /bin/t{number}" for number in range(8))
    assert flag.endswith("/bin/t4 and 3 more")
