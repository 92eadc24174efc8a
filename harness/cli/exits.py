"""Exit codes, as documented in `assay --help`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the shell learns."""

    OK = 0  # all planned trials have a grade
    FAULT = 1  # a fault of Assay's own
    USAGE = 2  # usage or configuration
    NO_GRADE = 3  # some planned trial has no grade
    ALERT = 3  # an alert fired: evidence does not verify, something of a dead run could not be removed
    GATE = 4  # a gate failed
    UNREACHABLE = 5  # the engine or a service
    INTERRUPTED = 130
