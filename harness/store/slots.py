"""One budget of trials in flight for everything that runs on a store, in whatever processes.

A place in the budget is a lock file in `slots/`. The kernel frees it when its process ends, however it ends. Without a
budget there is no limit but each run's own, and nothing is locked.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harness.store.faults import explained
from harness.store.leases import is_locked


class Slots:
    """The places of the store in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "slots"
        self._budget = self._folder / "budget"

    def budget(self) -> int | None:
        """How many trials may be in flight at once, or None without a limit. Raises StoreError."""
        with explained(self._budget):
            try:
                return int(self._budget.read_text())
            except (FileNotFoundError, ValueError):  # none, or being written just now
                return None

    def limit(self, trials: int | None) -> None:
        """Set the budget for all that begin from now on. Raises StoreError."""
        with explained(self._folder):
            if trials is None:
                self._budget.unlink(missing_ok=True)
                return
            self._folder.mkdir(exist_ok=True)
            fresh = self._budget.with_suffix(f".{os.getpid()}")
            fresh.write_text(f"{trials}\n")
            fresh.replace(self._budget)

    def take(self, budget: int) -> int | None:
        """A descriptor that holds a place until it is closed, or None while all are held. Raises StoreError."""
        for number in range(budget):
            path = self._folder / f"{number}.lock"
            with explained(path):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            else:
                return descriptor
        return None

    def taken(self) -> int:
        """How many places are held now. Raises StoreError."""
        budget = self.budget()
        if budget is None:
            return 0
        return sum(is_locked(self._folder / f"{number}.lock") for number in range(budget))
