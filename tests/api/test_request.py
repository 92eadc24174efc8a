"""Requests: from files, from options, refused with the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.request import AdaptiveRequest, RunRequest, make_request, merged, read_baseline, read_request
from harness.records.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs"


RUNS = sorted(path for path in CONFIGS.glob("*.toml") if path.name != "schedule.toml")  # which has a test of its own


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_the_shipped_configurations_are_valid(path: Path) -> None:
    assert read_request(path).suite == "terminal"


def test_a_bundled_configuration_is_found_by_name_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_request(Path("configs/demo.toml")).simulation is not None
    (tmp_path / "demo.toml").write_text('suite = "mine"\n')
    assert read_request(Path("demo.toml")).suite == "mine"


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('suite = "s"\nconcurrency = 2\n[budget]\ntokens = 10\nsteps = 3\n')
    request = read_request(file, {"concurrency": 8, "budget": {"tokens": 20, "steps": None}, "model": None})
    assert (request.concurrency, request.budget.tokens, request.budget.steps) == (8, 20, 3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"suite": "s", "concurency": 2}, "did you mean 'concurrency'"),
        ({"suite": "s", "budget": {"wall_s": -5}}, "budget.wall_s"),
        ({"suite": "s", "budget": {"wall_s": float("nan")}}, "budget.wall_s"),
        ({}, "suite"),
        ({"suite": ""}, "suite"),
        ({"suite": "s", "store": ""}, "store"),
        ({"suite": "s", "adaptive": {"history": "a", "bank": "b"}}, "not both"),
        ({"suite": "s", "repeats": 2, "adaptive": {}}, "repeats must be 1"),
        ({"suite": "s", "tasks": "csv-join/*"}, """tasks: 'csv-join/*' is no list — write ["csv-join/*"]"""),
        ({"suite": "s", "allow_unknown_price": True, "budget": {"cost_usd": 1}}, "give one of the two"),
    ],
)
def test_a_bad_request_names_its_key(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_request(values, place="run.toml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"suite": "s", "tasks": "a string"}, """RunRequest: tasks: 'a string' is no list — write ["a string"]"""),
        ({}, "RunRequest: suite: is missing"),
        ({"suite": "s", "concurency": 1}, "did you mean 'concurrency'"),
        ({"suite": "s", "adaptive": {"stop": -1}}, "RunRequest: adaptive.stop: -1: input should"),
        ({"suite": "s", "repeats": 0, "seed": "x"}, "2 problems"),
    ],
)
def test_a_bad_request_from_python_is_a_configuration_error_too(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunRequest(**values)
    assert words in str(caught.value)


def test_so_is_a_bad_part_of_one() -> None:
    with pytest.raises(ConfigError, match="AdaptiveRequest: stop: -1: input should be greater than 0"):
        AdaptiveRequest(stop=-1)


def test_all_that_is_wrong_with_a_file_is_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'suit = "terminal"\nconcurrency = 0\ntasks = "csv/*"\n\n[adaptive]\nstop = "x"\nhistori = 3\n'
        "[budget]\nwall_s = nan\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_request(file)
    first, *lines = str(caught.value).splitlines()
    assert first == f"{file}: 7 problems"
    assert [line.split(": ")[:2] for line in lines] == [
        [f"  {file}", "suite"],
        [f"  {file}:1", "suit"],
        [f"  {file}:2", "concurrency"],
        [f"  {file}:3", "tasks"],
        [f"  {file}:6", "adaptive.stop"],
        [f"  {file}:7", "adaptive.histori"],
        [f"  {file}:9", "budget.wall_s"],
    ]
    assert lines[1].endswith("did you mean 'suite'?")


def test_broken_toml_and_missing_files_are_configuration_errors(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("suite = \n")
    (tmp_path / "deep.toml").write_text("suite = " + "[" * 5000)
    (tmp_path / "folder.toml").mkdir()
    for name in ("a.toml", "none.toml", "deep.toml", "folder.toml"):
        with pytest.raises(ConfigError) as caught:
            read_request(tmp_path / name)
        assert name in str(caught.value)


plain = st.recursive(
    st.none() | st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)
tables = st.dictionaries(st.sampled_from("abc"), plain, max_size=3)


@given(tables)
def test_nothing_on_top_changes_nothing(base: dict[str, Any]) -> None:
    assert merged(base, {}) == base
    assert merged(base, dict.fromkeys(base)) == base


@pytest.mark.parametrize(
    ("text", "says"), [("0.55", "write 55%"), (".55", "write 55%"), ("55", "write 55%"), ("162.5%", "at most 100%")]
)
def test_a_baseline_that_is_neither_run_nor_rate_says_how_to_write_one(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_baseline(text)


def test_baselines_as_they_are_written() -> None:
    assert [read_baseline(text) for text in ("62.5%", "100 %", "0%")] == [0.625, 1.0, 0.0]
    assert [read_baseline(text) for text in ("20251130", "latest")] == ["20251130", "latest"]


def test_a_plan_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ConfigError, match="10000"):
        RunRequest(suite="terminal", repeats=1_000_000_000)


@pytest.mark.parametrize(
    "wrong",
    [{"concurrency": True}, {"concurrency": "4"}, {"repeats": "2"}, {"preflight": "no"}, {"adaptive": {"stop": "200"}}],
)
def test_a_value_of_another_type_is_refused_and_not_read_as_what_it_may_mean(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="should be a valid"):
        RunRequest(suite="terminal", **wrong)
