"""What a service says when it refuses, in words. Services wrap it in JSON, each in its own way. Pure."""

from __future__ import annotations

import json
from typing import Any

MOST_CHARS = 500
_KEYS = ("error", "message", "detail", "msg", "error_description")  # the usual wrappings, from the outside in


def said_in(body: str) -> str:
    """The sentence in the body of a refusal, on one line, at most `MOST_CHARS`; the body itself where none is found.

    Known wrappings: `{"error": {"message": …}}` of OpenAI and most that follow it, the same in a list, `{"error": …}`,
    `{"message": …}`, and `{"detail": …}` of FastAPI, there with a list of fields.
    """
    try:
        found = _sentence(json.loads(body))
    except (ValueError, RecursionError):
        found = ""
    text = " ".join((found or body).split())
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1] + "…"


def _sentence(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "; ".join(said for said in map(_sentence, part) if said)
    if not isinstance(part, dict):
        return ""
    said = next((said for key in _KEYS if (said := _sentence(part.get(key)))), "")
    field = part.get("loc")  # FastAPI names the field beside the message
    if said and isinstance(field, list):
        said = f"{'.'.join(map(str, field))}: {said}"
    return said
