"""Options that several commands share, and how results are printed."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from harness.api.request import DEFAULT_STORE as DEFAULT_STORE
from harness.records.base import Record

Store = Annotated[
    str, typer.Option("--store", envvar="ASSAY_STORE", help="Folder of the evidence store.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, and nothing else.")]
CountMutants = Annotated[
    str, typer.Option(help="Whose survival makes a task unavailable: all, declared (by the task), none.")
]
RunId = Annotated[str, typer.Argument(help="A run: its id, a unique prefix, or `latest`.")]


def print_json(value: Record | dict[str, Any] | list[Any]) -> None:
    """One JSON document on stdout; keys without a value are null."""
    plain = value.plain() if isinstance(value, Record) else value
    json.dump(plain, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def say(text: str = "") -> None:
    """A line for people, on stderr, so that stdout holds results only."""
    print(text, file=sys.stderr)
