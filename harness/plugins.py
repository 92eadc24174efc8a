"""Finds plug-ins: by entry point name, or as `path/to/file.py:name`.

Groups: `assay.solvers`, `assay.graders`, `assay.formats`. A distribution adds one with an entry point; a user
without one names a file. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from harness.records.base import sha256_of
from harness.records.errors import ConfigError


def names(group: str) -> tuple[str, ...]:
    """The names registered in a group, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=f"assay.{group}")}))


def load(group: str, name: str, also: str = "") -> Any:
    """The object called `name` in `group` ("solvers", …), or in a file. Raises ConfigError with near matches; `also`
    says what else may be written there."""
    if name.partition(":")[0].endswith(".py"):
        return _from_file(name)
    for point in entry_points(group=f"assay.{group}"):
        if point.name == name:
            return point.load()
    known = names(group)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(
        f"no {group.removesuffix('s')} is called {name!r}",
        remedy=f"{hint}known: {', '.join(known) or 'none'}; or give path/to/file.py:name{also}",
    )


def code_digest(obj: Any) -> str | None:
    """sha256 of the file an object's class or function was defined in; None when it has none."""
    module = sys.modules.get(getattr(obj, "__module__", ""), None)
    file = getattr(module, "__file__", None)
    return sha256_of(Path(file).read_bytes()) if file else None


def _from_file(name: str) -> Any:
    path_text, _, attribute = name.partition(":")
    path = Path(path_text)
    if not path.is_file():
        raise ConfigError(f"{path_text} is not a file", remedy="give path/to/file.py:name")
    if not attribute:
        raise ConfigError(f"{name!r} names no object in the file", remedy=f"write {path_text}:ClassName")
    module_name = "assay_plugin_" + sha256_of(str(path.resolve()).encode())[7:19]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError("the file cannot be imported", place=path_text)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may raise anything; say where
        raise ConfigError(
            f"importing it raised {type(error).__name__}: {error}", place=path_text, remedy="mend the file"
        ) from error
    if not hasattr(module, attribute):
        raise ConfigError(f"the file defines no {attribute!r}", place=path_text)
    return getattr(module, attribute)
