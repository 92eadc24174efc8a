"""The `assay` command. It alone wires, prints and exits; one file per command, loaded when it is called."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `assay` script."""
    from harness.cli.shell import run_process

    run_process()
