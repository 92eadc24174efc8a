"""Folders to load: a small Harbor task and a small family, with changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

MakeFolder = Callable[..., Path]

TASK_TOML = """\
schema_version = "1.4"

[metadata]
author = "A. Tester"

[agent]
timeout_sec = 60.0

[environment]
docker_image = "assay-base:1"
network_mode = "no-network"

[assay]
tags = ["text"]

[assay.budget]
tokens = 1000

[[assay.mutations]]
name = "keeps duplicates"
find = "sort -u"
replace = "sort"
"""

TASK_FILES: Mapping[str, str | bytes] = {
    "task.toml": TASK_TOML,
    "instruction.md": "Sort the words.\n",
    "solution/solve.sh": "sort -u words.txt > out.txt\n",
    "tests/test.sh": "cmp out.txt /tests/want && echo 1 > /logs/verifier/reward.txt\n",
    "tests/want": "a\nb\n",
    "environment/files/words.txt": "b\na\nb\n",
}

FAMILY_FILES: Mapping[str, str | bytes] = {
    **TASK_FILES,
    "variants.toml": '[[variant]]\nid = "01"\nout = "a b.txt"\n\n[[variant]]\nid = "02"\nout = "c.txt"\n',
    "instruction.md": "Sort the words into ~{ out }~.\n",
    "solution/solve.sh": "sort -u words.txt > ~{ out | quote }~\n",
    "tests/test.sh": "cmp ~{ out | quote }~ /tests/want && echo 1 > /logs/verifier/reward.txt\n",
}


def write_files(folder: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Write files below a folder; None leaves one out."""
    for path, content in files.items():
        if content is None:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.fixture
def make_task(tmp_path: Path) -> MakeFolder:
    """`make_task(name, files)`: a task folder; `files` replaces or (None) leaves out."""

    def make(name: str = "sort-words", files: Mapping[str, str | bytes | None] | None = None) -> Path:
        return write_files(tmp_path / name, {**TASK_FILES, **(files or {})})

    return make


@pytest.fixture
def make_family(tmp_path: Path) -> MakeFolder:
    """`make_family(name, files)`: a family of two variants."""

    def make(name: str = "sort-family", files: Mapping[str, str | bytes | None] | None = None) -> Path:
        return write_files(tmp_path / name, {**FAMILY_FILES, **(files or {})})

    return make


@pytest.fixture
def task_toml() -> str:
    """The text of the task's settings, to build upon."""
    return TASK_TOML
