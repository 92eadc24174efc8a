"""Decides which processes of a container belong to a command. Pure: process tables in, process numbers out.

Descent alone is not enough (a double fork hands a process to process 1) and neither is the session (`setsid`), so
the rule is by exclusion: a process belongs to a command unless it was there before, or descends from one that was,
or from another command that runs at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

_PF_EXITING = 0x4  # Linux, include/linux/sched.h


class ProcessKey(NamedTuple):
    """A process for as long as the machine is up: numbers are reused, the pair with the start time is not."""

    pid: int
    started: int  # clock ticks since boot


class ProcessEntry(NamedTuple):
    """A row of the process table."""

    key: ProcessKey
    parent: int
    state: str  # one letter, as in /proc/PID/stat
    threads: int = 1
    exiting: bool = False

    @property
    def alive(self) -> bool:
        """Whether it can still act. A process whose first thread has ended looks like a zombie while others run."""
        return self.state not in "ZXx" or self.threads > 1


def parse_stat(stat: bytes) -> ProcessEntry:
    """The entry of a `/proc/PID/stat` line; the name in parentheses may hold anything, parentheses included.

    Raises ValueError for what is not such a line.
    """
    pid, _, rest = stat.partition(b" (")
    fields = rest[rest.rindex(b")") + 2 :].split()
    if len(fields) < 20:
        raise ValueError(f"not a stat line: {stat[:80]!r}")
    key = ProcessKey(int(pid), int(fields[19]))
    return ProcessEntry(
        key,
        parent=int(fields[1]),
        state=fields[0].decode("ascii"),
        threads=int(fields[17]),
        exiting=bool(int(fields[6]) & _PF_EXITING),
    )


def select_foreign(
    table: Mapping[int, ProcessEntry],
    *,
    keeper: int,
    before: Collection[ProcessKey] = (),
    spared_roots: Collection[int] = (),
) -> tuple[ProcessEntry, ...]:
    """The live processes to end: all of `table` but the keeper, those of `before`, `spared_roots`, and descendants.

    `table` holds the processes of one container by their number on the host, `keeper` is its process 1.
    """

    def spared(pid: int) -> bool:
        seen: set[int] = set()
        while pid != keeper and pid in table and pid not in seen:
            if table[pid].key in before or pid in spared_roots:
                return True
            seen.add(pid)
            pid = table[pid].parent
        return False

    return tuple(entry for pid, entry in sorted(table.items()) if pid != keeper and entry.alive and not spared(pid))
