"""From the bytes of `task.toml` to its schema record, or to errors with file, line and remedy."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.formats.places import Where, near_match, raise_all
from harness.formats.schema import CAPABILITIES, KNOWN_SCHEMAS, TaskToml
from harness.formats.toml_lines import KeyPath, key_lines, nearest_line
from harness.records.errors import TaskError

TASK_TOML = "task.toml"


def parse_toml(content: bytes, where: Where, path: str) -> tuple[str, dict[str, Any]]:
    """The text and the values of a TOML file. Raises TaskError with the line."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TaskError("not UTF-8", place=where.place(path, line), remedy="save the file as UTF-8") from error
    if text.startswith("\ufeff"):
        raise TaskError(
            "a byte order mark, which TOML does not know",
            place=where.place(path, 1),
            remedy="save the file as UTF-8 without one",
        )
    try:
        return text, tomllib.loads(text)
    except RecursionError as error:
        raise TaskError("bad TOML: nested too deeply", place=where.place(path)) from error
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(at.group(1)) if at else text.count("\n") + 1
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise TaskError(f"bad TOML: {message}", place=where.place(path, line)) from error


def parse_task_toml(content: bytes, where: Where) -> TaskToml:
    """The checked `task.toml`. Raises TaskError, or LoadErrors with everything that is wrong."""
    try:
        return _validated(content)
    except _Problems:
        text, values = parse_toml(content, where, TASK_TOML)
        try:
            return TaskToml.model_validate(values)
        except ValidationError as error:
            lines = key_lines(text)
            raise_all((_task_error(detail, lines, where) for detail in _leaves(error)), where.place(TASK_TOML))
            raise


class _Problems(Exception):
    """The content has problems; they depend on where it stands only in what they say."""


@lru_cache(maxsize=256)
def _validated(content: bytes) -> TaskToml:
    # The variants of a family often share one task.toml, and parsing it is most of a load's time.
    try:
        return TaskToml.model_validate(tomllib.loads(content.decode("utf-8")))
    except (ValueError, ValidationError, RecursionError) as error:
        raise _Problems from error


def _leaves(error: ValidationError) -> list[ErrorDetails]:
    """One detail per key: of a union's several complaints the first will do."""
    seen: dict[KeyPath, ErrorDetails] = {}
    for detail in error.errors(include_url=False):
        seen.setdefault(_key_path(detail), detail)
    return list(seen.values())


def _key_path(detail: ErrorDetails) -> KeyPath:
    """Where in the document: pydantic adds the union's branch to the location, which is no key."""
    model: type[BaseModel] | None = TaskToml
    path: list[str | int] = []
    for part in detail["loc"]:
        if isinstance(part, int):
            path.append(part)
            continue
        if model is None:
            break
        path.append(part)
        field = model.model_fields.get(part)
        model = _table_within(field.annotation) if field else None
    if model is None and not path and detail["loc"]:
        path = list(detail["loc"])
    return tuple(path)


def _table_within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_table_within(inner) for inner in get_args(annotation))
    return next((model for model in found if model is not None), None)


def _table_at(path: KeyPath) -> type[BaseModel]:
    model: type[BaseModel] = TaskToml
    for part in path:
        if isinstance(part, str):
            field = model.model_fields.get(part)
            model = (_table_within(field.annotation) if field else None) or model
    return model


def dotted(path: KeyPath) -> str:
    """A key path as people write it: `steps[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _task_error(detail: ErrorDetails, lines: dict[KeyPath, int], where: Where) -> TaskError:
    path = _key_path(detail)
    place = where.place(TASK_TOML, nearest_line(lines, path))
    if detail["type"] == "extra_forbidden":
        return _unknown_key(path, place)
    if detail["type"] == "missing":
        return TaskError(f"{dotted(path)} is missing", place=place, remedy="add it")
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    given = detail["input"]
    if path[-1:] in (("schema_version",), ("version",)) and len(path) == 1:
        remedy = f"this version reads schema {KNOWN_SCHEMAS[0]} to {KNOWN_SCHEMAS[-1]}"
        return TaskError(f"{dotted(path)} = {given!r} is not a known schema version", place=place, remedy=remedy)
    hint = near_match(given, CAPABILITIES) if "capabilities" in path and isinstance(given, str) else ""
    return TaskError(f"{dotted(path)} = {given!r}: {_as_rule(message)}", place=place, remedy=hint)


def _as_rule(message: str) -> str:
    return message if message.startswith(("give ", "no ", "a size")) else f"it must be {message}"


def _unknown_key(path: KeyPath, place: str) -> TaskError:
    key = str(path[-1])
    known = _table_at(path[:-1]).model_fields
    table = f"[{dotted(path[:-1])}]" if len(path) > 1 else "the root table"
    hint = near_match(key, known)
    elsewhere = [name for name in _homes().get(key, ()) if name != dotted(path[:-1])]
    if not hint and elsewhere:
        hint = "it belongs in " + " or ".join(f"[{name}]" for name in elsewhere)
    return TaskError(
        f"unknown key {key!r} in {table}", place=place, remedy=f"{hint} known: {', '.join(sorted(known))}".strip()
    )


@cache
def _homes() -> dict[str, tuple[str, ...]]:
    """The tables (not below a list) that know each key."""
    homes: dict[str, tuple[str, ...]] = {}
    pending: list[tuple[str, type[BaseModel]]] = [("", TaskToml)]
    while pending:
        name, model = pending.pop(0)
        for key, field in model.model_fields.items():
            homes[key] = (*homes.get(key, ()), name) if name else homes.get(key, ())
            inner = _table_within(field.annotation)
            if inner is not None and not str(field.annotation).startswith("list"):
                pending.append((f"{name}.{key}" if name else key, inner))
    return homes
