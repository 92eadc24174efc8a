"""Two figures of a suite's audit chain, without reading all of it: for who asks again and again."""

from __future__ import annotations

import json
from typing import Any

from harness.store.sqlite import SqliteStore


def last_cycle(store: SqliteStore, stream: str) -> dict[str, Any] | None:
    """The payload of the last cycle that came to its end, or None. Raises StoreError."""
    rows = store.select(
        "SELECT body FROM events WHERE stream = ? AND kind = 'audit.finished' ORDER BY seq DESC LIMIT 1", stream
    )
    if not rows:
        return None
    payload: dict[str, Any] = json.loads(rows[0][0])["payload"]
    return payload


def standing_alerts(store: SqliteStore, stream: str) -> dict[str, int]:
    """How many alerts stand, by kind. Raises StoreError."""
    rows = store.select(
        "SELECT kind, json_extract(body, '$.payload.id'), json_extract(body, '$.payload.finding.kind') FROM events"
        " WHERE stream = ? AND kind IN ('alert.raised', 'alert.resolved') ORDER BY seq",
        stream,
    )
    standing: dict[str, str] = {}
    for kind, alert, finding in rows:
        if kind == "alert.raised":
            standing[alert] = finding
        else:
            standing.pop(alert, None)
    return {kind: list(standing.values()).count(kind) for kind in sorted(set(standing.values()))}
