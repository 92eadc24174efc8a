"""The one error of this package. It imports nothing else of the harness, hence its own root."""

from __future__ import annotations


class StatsError(ValueError):
    """Numbers that contradict each other, or a question that they cannot answer; the message says which and why."""
