"""Solvers from a user's file: whatever is wrong with one is told, with its name, before anything is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api.request import RunRequest
from harness.api.wiring import find_solver, service_url
from harness.records.errors import ConfigError

BODY = "    async def run(self, episode): pass\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise SystemExit(0)\n", "importing it raised SystemExit: 0"),
        ("raise ValueError('boom')\n", "importing it raised ValueError: boom"),
        ("def (\n", "importing it raised SyntaxError"),
        ("X = 5\n", "is not a solver"),
        ("class X:\n    def run(self, episode): pass\n", "is not a solver"),
        (f"class X:\n    def __init__(self): raise ValueError('no')\n{BODY}", "raised ValueError: no"),
        (f"class X:\n    def __init__(self): raise SystemExit('no')\n{BODY}", "raised SystemExit: no"),
        (f"class X:\n    def __init__(self, needed): pass\n{BODY}", "raised TypeError"),
        (f"class X:\n    actor = 'god'\n{BODY}", "'god' is not a valid Actor"),
        (f"class X:\n    @staticmethod\n    def check_options(options): return 1 // 0\n{BODY}", "ZeroDivisionError"),
    ],
)
def test_a_solver_that_cannot_be_used_is_a_configuration_error(tmp_path: Path, source: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(ConfigError) as caught:
        find_solver(f"{path}:X", {})
    assert words in str(caught.value)
    assert "mine.py" in str(caught.value)


def test_one_that_can_be_used_is_found(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"class X:\n    version = 3\n{BODY}")
    plugin = find_solver(f"{path}:X", {"a": 1})
    assert (plugin.spec.version, plugin.spec.options, plugin.needs_model) == ("3", {"a": 1}, False)


@pytest.mark.parametrize("url", ["nothing", "127.0.0.1:8000/v1", "ftp://x/v1", "http://", "https:/x/v1"])
def test_an_address_that_is_none_is_told_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no address of a model service"):
        service_url(RunRequest(suite="s", base_url=url))
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError, match="no address of a model service"):
        service_url(RunRequest(suite="s"))
