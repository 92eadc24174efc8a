"""Families: one template folder and a table of variants, rendered into as many tasks.

The folder is a task directory whose text files are Jinja templates, and `variants.toml` has one `[[variant]]` table
per task. Delimiters are `~{ … }~`, `~% … %~` and `~# … #~`, which no shell, awk, git or curl syntax uses. Templates
run in Jinja's sandbox, within bounds: loading somebody's suite must not run somebody's code.
"""

from __future__ import annotations

import json
import re
import shlex
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
import jinja2.meta

from harness.formats.bounded import BoundedEnvironment, render
from harness.formats.build import Identity, build_task
from harness.formats.harbor import VARIANTS
from harness.formats.parse import parse_toml
from harness.formats.places import Where, flatten, near_match, raise_all
from harness.formats.source import FolderSource, RenderedSource
from harness.formats.toml_lines import key_lines, nearest_line
from harness.records.errors import TaskError
from harness.records.task import Task, TreeFile

_OPENERS = (b"~{", b"~%", b"~#")
_RETURN = "\ue00d"  # stands for a carriage return while Jinja, which would drop it, has the text
_FILE_NAME = "<family template>"  # by which its frames are known in a traceback
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RESERVED = ("variant", "family")


class FamilyFormat:
    """A folder with a `variants.toml` is a family; task ids are `<folder>/<variant id>`."""

    name = "family"

    def recognises(self, folder: Path) -> bool:
        return (folder / VARIANTS).is_file()

    def load(self, folder: Path) -> tuple[Task, ...]:
        """All tasks of the family, in the table's order. Raises TaskError, or LoadErrors with all that is wrong."""
        family = read_family(folder)
        tasks: list[Task] = []
        errors: list[TaskError] = []
        for variant in family.variants:
            try:
                tasks.append(family.task(variant))
            except TaskError as error:
                errors.extend(flatten(error))
        raise_all(_told_once(errors), str(folder))
        return tuple(tasks)


@dataclass(frozen=True)
class Template:
    """A compiled template file."""

    text: str
    mode: int
    code: CodeType


@dataclass(frozen=True)
class Family:
    """A family as read: its files, those that are templates compiled once, and its variants by id."""

    folder: Path
    name: str
    plain: Mapping[str, TreeFile]
    templates: Mapping[str, Template]
    variants: Mapping[str, Mapping[str, Any]]

    def task(self, variant: str) -> Task:
        """One variant as a task. Raises TaskError with file, line and variant."""
        where = Where(str(self.folder), variant)
        names = {**self.variants[variant], "variant": variant, "family": self.name}
        files = dict(self.plain)
        errors: list[TaskError] = []
        for path, template in self.templates.items():
            try:
                content = _rendered(template, path, names, where).encode("utf-8", "surrogateescape")
                files[path] = TreeFile(path=path, content=content, mode=template.mode)
            except TaskError as error:
                errors.append(error)
        raise_all(errors, where.place())
        identity = Identity(f"{self.name}/{variant}", self.name, self._build_context())
        return build_task(identity, RenderedSource(files, where))

    def _build_context(self) -> str | None:
        if any(path.startswith("environment/") for path in self.templates):
            return None  # what is on disk is not what a variant means
        return str((self.folder / "environment").resolve())


def read_family(folder: Path) -> Family:
    """Read and compile a family. Raises TaskError, or LoadErrors with all bad templates and variants."""
    where = Where(str(folder))
    source = FolderSource(folder, where)
    plain: dict[str, TreeFile] = {}
    templates: dict[str, Template] = {}
    errors: list[TaskError] = []
    for path in source.paths():
        if path == VARIANTS:
            continue
        try:
            file = source.read(path)
            text = _template_text(file.content)
            if text is None:
                plain[path] = file
            else:
                templates[path] = Template(text, file.mode, _compiled(text, where, path))
        except TaskError as error:
            errors.append(error)
    variants = _read_variants(source, errors)
    raise_all(errors, str(folder))
    return Family(folder, folder.resolve().name, plain, templates, variants)


def unused_keys(family: Family) -> tuple[str, ...]:
    """The keys of variants that no template mentions, sorted."""
    used = {"id"}
    for template in family.templates.values():
        used |= jinja2.meta.find_undeclared_variables(ENVIRONMENT.parse(template.text))
    return tuple(sorted({key for values in family.variants.values() for key in values} - used))


# --- variants ------------------------------------------------------------------------------------------


def _read_variants(source: FolderSource, errors: list[TaskError]) -> dict[str, Mapping[str, Any]]:
    where = source.where
    try:
        text, values = parse_toml(source.read(VARIANTS).content, where, VARIANTS)
    except TaskError as error:
        errors.append(error)
        return {}
    lines = key_lines(text)
    for key in values.keys() - {"variant"}:
        remedy = near_match(key, ("variant",)) or "only [[variant]] tables stand here"
        errors.append(TaskError(f"unknown key {key!r}", place=where.place(VARIANTS, lines.get((key,))), remedy=remedy))
    tables = values.get("variant", [])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        remedy = "write a [[variant]] table for each task"
        errors.append(TaskError("no variants", place=where.place(VARIANTS, lines.get(("variant",))), remedy=remedy))
        return {}
    variants: dict[str, Mapping[str, Any]] = {}
    first_lines: dict[str, int | None] = {}
    for index, table in enumerate(tables):
        line = nearest_line(lines, ("variant", index, "id"))
        try:
            variant = _variant_id(table, where.place(VARIANTS, line))
            if variant in variants:
                message = f"variant id {variant!r} stands at line {first_lines[variant]} already"
                raise TaskError(message, place=where.place(VARIANTS, line), remedy="give each variant its own id")
            variants[variant], first_lines[variant] = table, line
        except TaskError as error:
            errors.append(error)
    return variants


def _variant_id(table: Mapping[str, Any], place: str) -> str:
    reserved = [name for name in _RESERVED if name in table]
    if reserved:
        raise TaskError(f"a variant cannot set {reserved[0]!r}", place=place, remedy="templates get that name anyway")
    if "id" not in table:
        raise TaskError("a variant without id", place=place, remedy='add id = "01" or the like')
    variant = table["id"]
    if not isinstance(variant, str) or not _ID.fullmatch(variant):
        remedy = "use letters, digits, '.', '_' and '-', in quotes"
        raise TaskError(f"id = {variant!r} is no variant id", place=place, remedy=remedy)
    return variant


def _told_once(errors: list[TaskError]) -> list[TaskError]:
    """A fault of the template shows in every variant: tell it for the first and say how many share it."""
    groups: dict[tuple[str, str], list[TaskError]] = {}
    for error in errors:
        groups.setdefault((re.sub(r" \(variant .*\)$", "", error.place), error.message), []).append(error)
    told: list[TaskError] = []
    for (_, message), group in groups.items():
        others = f" (and {len(group) - 1} more variants)" if len(group) > 1 else ""
        told.append(TaskError(message + others, place=group[0].place, remedy=group[0].remedy))
    return told


# --- templates -----------------------------------------------------------------------------------------


def _quote(value: object) -> str:
    return shlex.quote(str(value))


def _to_json(value: object, indent: int | None = None) -> str:
    # Jinja's own escapes <, > and & for web pages, which would change what a task's files say.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _make_environment() -> BoundedEnvironment:
    environment = BoundedEnvironment(
        variable_start_string="~{",
        variable_end_string="}~",
        block_start_string="~%",
        block_end_string="%~",
        comment_start_string="~#",
        comment_end_string="#~",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # these are scripts and data, not web pages
    )
    environment.filters["quote"] = _quote
    environment.filters["tojson"] = _to_json
    return environment


ENVIRONMENT = _make_environment()


def _template_text(content: bytes) -> str | None:
    """The text of a template, None for a file to copy as it is."""
    if not any(opener in content for opener in _OPENERS):
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None  # a binary file that holds an opener by chance


def _compiled(text: str, where: Where, path: str) -> CodeType:
    try:
        return _compiled_text(text)
    except jinja2.TemplateSyntaxError as error:
        raise TaskError(f"bad template: {error.message}", place=where.place(path, error.lineno)) from error
    except (RecursionError, MemoryError, OverflowError) as error:  # constants are folded when it is compiled
        raise TaskError(f"bad template: {_said(error)}", place=where.place(path)) from error


@lru_cache(maxsize=1024)
def _compiled_text(text: str) -> CodeType:
    # Half of a load's time; a generator often stands both in environment/ and in tests/.
    return ENVIRONMENT.compile(text.replace("\r", _RETURN), name=_FILE_NAME, filename=_FILE_NAME)


def _rendered(template: Template, path: str, names: Mapping[str, Any], where: Where) -> str:
    loaded = jinja2.Template.from_code(ENVIRONMENT, template.code, ENVIRONMENT.make_globals(None))
    try:
        return render(ENVIRONMENT, loaded, names).replace(_RETURN, "\r")
    except Exception as error:  # an expression in a template may raise anything
        line = next(
            (
                frame.lineno
                for frame in reversed(traceback.extract_tb(error.__traceback__))
                if frame.filename == _FILE_NAME
            ),
            None,
        )
        remedy = ""
        if isinstance(error, jinja2.UndefinedError):
            unknown = re.match(r"'(\w+)' is undefined", str(error))
            remedy = near_match(unknown.group(1), names) if unknown else ""
            remedy = remedy or f"the variant has: {', '.join(sorted(names))}"
        raise TaskError(f"rendering failed: {_said(error)}", place=where.place(path, line), remedy=remedy) from error


def _said(error: Exception) -> str:
    """What an exception says, or what it is when it says nothing."""
    return str(error) or type(error).__name__
