"""Runs a command inside the test's own process: quicker than one of its own, and as the shell would."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from harness.cli.shell import run_command_line


@dataclass(frozen=True)
class Ended:
    """What a shell sees of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout, which must be one JSON document and nothing else."""
        return json.loads(self.out)


def assay(*arguments: object) -> Ended:
    """The command's exit code and output."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["assay", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run_command_line()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())
