"""Whose words go where: stdout holds results only, whatever a solver prints, and the command ends when it is done."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def results_only() -> Iterator[None]:
    """Within, what is written to stdout, by Python or past it, goes to stderr: a solver may print, and a result is
    to be read by a program."""
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a closed stdout or stderr: there is nothing to keep apart
            kept = os.dup(1)
            stack.callback(_put_back, kept)
            os.dup2(2, 1)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _put_back(kept: int) -> None:
    os.dup2(kept, 1)
    os.close(kept)


def leave(code: int, before: frozenset[threading.Thread]) -> None:
    """End the process now if threads that were not there `before` would hold it: a solver that was cut off by its
    budget may have left one that never ends. Returns when there is none."""
    # Python waits for threads that are no daemons, and for those of executors whatever they are.
    pools = sys.modules.get("concurrent.futures.thread")
    waited_for = frozenset(getattr(pools, "_threads_queues", ()))
    left = [thread for thread in threading.enumerate() if thread not in before]
    if not any(not thread.daemon or thread in waited_for for thread in left):
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)
