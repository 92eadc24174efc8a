"""The evidence store: append-only, hash-chained events in SQLite, large bodies by content in a blob folder."""
