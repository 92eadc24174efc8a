"""Measured amounts in words."""

from __future__ import annotations

MEBIBYTE = 1024 * 1024


def amount(value: float, unit: str) -> str:
    """A measured amount for people."""
    if unit == "bytes":
        return f"{value / MEBIBYTE:.1f} MiB"
    return f"{value:.1f} s" if unit == "s" else f"{value:g} {unit}"
