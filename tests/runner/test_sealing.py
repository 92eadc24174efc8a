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


def test_many_are_counted() -> None:
    (flag,) = replaced_programs(f"D /bin/t{number}" for number in range(8))
    assert flag.endswith("/bin/t4 and 3 more")
