"""Whether the installed libraries are versions that Assay declares, and can be imported at all."""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Callable
from importlib import metadata

from harness.bootstrap.check import Check, Status

DISTRIBUTION = "assay"
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?$")
_CLAUSE = re.compile(r"^(>=|<=|==|!=|>|<)\s*([0-9][0-9.]*)$")
_RELEASE = re.compile(r"^(?:\d+!)?(\d+(?:\.\d+)*)")
_OPERATORS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
# What the engine's client stands on: a new release of one of these once broke all access to Docker.
_BENEATH_DOCKER = ("requests", "urllib3")


def parse_requirement(text: str) -> tuple[str, str] | None:
    """(name, version clauses) of an unconditional requirement; None for one that belongs to an extra or a marker."""
    match = _REQUIREMENT.match(text.strip())
    if match is None:
        raise ValueError(f"not a requirement: {text!r}")
    return None if match[3] else (match[1], match[2].strip())


def release_of(version: str) -> tuple[int, ...]:
    """The numbers of a version without trailing zeros; what follows them (rc1, .post2) is not looked at."""
    match = _RELEASE.match(version)
    if match is None:
        raise ValueError(f"not a version: {version!r}")
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def satisfies(version: str, clauses: str) -> bool:
    """Whether a version meets every clause, such as `>=7.1,<8`.

    Raises:
        ValueError: a clause that is not a comparison with a plain release number.
    """
    for clause in filter(None, (part.strip() for part in clauses.split(","))):
        match = _CLAUSE.match(clause)
        if match is None:
            raise ValueError(f"not a version clause: {clause!r}")
        if not _OPERATORS[match[1]](release_of(version), release_of(match[2])):
            return False
    return True


def check_libraries() -> Check:
    """Every declared dependency: present, within its bounds, importable. Names each one that is not."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return Check("libraries", Status.WARN, "assay itself is not installed", "`pip install -e .` in the checkout")
    seen, wrong = [], []
    for name, clauses in filter(None, map(parse_requirement, requirements)):
        problem = find_problem(name, clauses)
        if problem:
            wrong.append(problem)
        else:
            seen.append(f"{name} {metadata.version(name)}")
    if wrong:
        return Check(
            "libraries", Status.FAIL, "; ".join(wrong), "`make setup`, or `pip install -e .` in this environment"
        )
    beneath = [f"{name} {metadata.version(name)}" for name in _BENEATH_DOCKER]
    return Check("libraries", Status.OK, ", ".join([*seen, *beneath]))


def find_problem(name: str, clauses: str) -> str:
    """What is wrong with an installed library, or ""."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
    if not satisfies(version, clauses):
        return f"{name} {version} is not {clauses}"
    try:
        importlib.import_module(name.replace("-", "_"))
    except Exception as error:  # noqa: BLE001  a library broken by another's release raises whatever it likes
        return f"{name} {version} cannot be imported: {type(error).__name__}: {error}"
    return ""
