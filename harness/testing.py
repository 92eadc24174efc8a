"""Doubles that ship with Assay, for tests of solvers, graders and runners: no engine, no network."""

from harness.sandbox.memory import Background, MemorySandbox, MemorySandboxProvider, Process, Program, Trouble, lost
from harness.sandbox.memory_files import MemoryFiles
from harness.sandbox.tiny_shell import tiny_shell

__all__ = [
    "Background",
    "MemoryFiles",
    "MemorySandbox",
    "MemorySandboxProvider",
    "Process",
    "Program",
    "Trouble",
    "lost",
    "tiny_shell",
]
