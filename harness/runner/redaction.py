"""Known secret values never reach the store, wherever they turn up (CASES A12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHORTEST = 6  # shorter values would blank ordinary words


class Redactor:
    """Replaces secret values by `[secret NAME]` in text, bytes and nested JSON-able values.

    Encoded forms (base64, percent) are not searched for: the agent that encodes a secret hides it from this too.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        found = sorted((secrets or {}).items(), key=lambda item: -len(item[1]))
        self._pairs = [(value, f"[secret {name}]") for name, value in found if len(value) >= SHORTEST]
        self._byte_pairs = [(value.encode("utf-8", "surrogatepass"), mark.encode()) for value, mark in self._pairs]

    def text(self, text: str) -> str:
        for value, mark in self._pairs:
            text = text.replace(value, mark)
        return text

    def data(self, data: bytes) -> bytes:
        for value, mark in self._byte_pairs:
            data = data.replace(value, mark)
        return data

    def value(self, value: Any) -> Any:
        """`value` with every string in it redacted; other types pass through."""
        if not self._pairs:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value
