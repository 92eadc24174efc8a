"""Lint: each doubt has its code, its level and its place, and variants are told together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.formats.findings import Finding, Level, lines_of
from harness.formats.lint import lint
from harness.formats.lock import make_lock, write_lock
from harness.formats.suite import load_suite
from harness.records.errors import ConfigError
from harness.records.suite import ImageLock

MakeFolder = Callable[..., Path]
IMAGE = '[environment]\ndocker_image = "x:1"\nnetwork_mode = "no-network"\n'
AGENT = "[agent]\ntimeout_sec = 60\n"


def codes(folder: Path) -> dict[str, Level]:
    return {finding.code: finding.level for finding in lint(folder)}


def only(folder: Path, code: str) -> Finding:
    (finding,) = [finding for finding in lint(folder) if finding.code == code]
    return finding


def test_a_folder_whose_name_breaks_the_line_is_written_out() -> None:
    assert str(Finding(Level.ERROR, "load", "a\nb\x1b", "bad")) == "a\\nb\\x1b: error: bad [load]"


def test_memory_that_no_machine_has_is_refused(make_task: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace("[environment]", "[environment]\nmemory_mb = 99999999999999", 1)
    assert "67108864" in only(make_task(files={"task.toml": text}), "load").message


def test_a_good_task_has_but_its_exposures(make_task: MakeFolder, task_toml: str) -> None:
    text = task_toml.replace("tokens = 1000", "tokens = 1000\nsteps = 5\ncost_usd = 0.1")
    folder = make_task(files={"task.toml": text})
    exposed = {"grading-shared": Level.NOTE, "capabilities-default": Level.NOTE}
    assert codes(folder) == {"image-unlocked": Level.WARNING, **exposed}
    image = ImageLock(digest="sha256:" + "1" * 64, platform="linux/amd64")
    write_lock(folder / "suite.lock", make_lock(load_suite(folder), {"assay-base:1": image}))
    assert codes(folder) == exposed
    (folder / "suite.lock").unlink()
    (folder / "task.toml").write_text(text.replace("[assay]", "[assay]\ncapabilities = []"))
    assert "capabilities-default" not in codes(folder)


@pytest.mark.parametrize(
    ("settings", "code", "level"),
    [
        (IMAGE, "budget-wall", Level.WARNING),
        (IMAGE + "[agent]\ntimeout_sec = 90000\n", "budget-long", Level.WARNING),
        (IMAGE + AGENT, "budget-absent", Level.NOTE),
        (IMAGE + AGENT, "mutation-missing", Level.WARNING),
        (IMAGE + "[verifier]\ntimeout_sec = 7200\n", "tests-long", Level.WARNING),
        (IMAGE.replace("no-network", "public"), "network-open", Level.NOTE),
        (IMAGE + "gpus = 2\n", "unsupported", Level.WARNING),
        (IMAGE + '[assay]\ncapabilities = ["SYS_ADMIN", "KILL"]\n', "capabilities-added", Level.WARNING),
        (IMAGE + '[assay]\ncapabilities = ["KILL"]\n', "capabilities-kept", Level.NOTE),
        (IMAGE + "[assay]\nrequires_write = false\n", "null-may-pass", Level.NOTE),
        (IMAGE + "[assay.grading]\nkeep_services = true\n", "services-exposed", Level.WARNING),
        (IMAGE + '[verifier]\nenvironment_mode = "separate"\n', "artifacts-missing", Level.WARNING),
        (IMAGE + '[verifier.env]\nKEY = "${TOKEN}"\n', "host-variable", Level.NOTE),
    ],
)
def test_settings(make_task: MakeFolder, settings: str, code: str, level: Level) -> None:
    folder = make_task(files={"task.toml": settings})
    finding = only(folder, code)
    assert finding.level is level
    assert finding.place == str(folder)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"solution/solve.sh": None}, "solution-missing"),
        ({"tests/test.sh": "cmp out.txt /tests/want\n"}, "reward-unwritten"),
        ({"instruction.md": b"caf\xe9\n"}, "instruction-encoding"),
        ({"instruction.md": " \n"}, "instruction-empty"),
        ({"instruction.md": "Run `sort -u words.txt > out.txt`.\n"}, "solution-shown"),
        ({"tests/test.sh": "echo 1 > /logs/verifier/reward.txt\r\n"}, "crlf-script"),
        ({"solution/run": "#!/bin/sh\r\nls\r\n"}, "crlf-script"),
    ],
)
def test_files(make_task: MakeFolder, files: Mapping[str, str | bytes | None], code: str) -> None:
    folder = make_task(files={"task.toml": IMAGE + AGENT, **files})
    finding = only(folder, code)
    assert finding.level is Level.WARNING
    assert finding.remedy or code == "instruction-empty"
    assert code not in codes(make_task("good", files={"task.toml": IMAGE + AGENT}))


def test_load_errors_come_first_and_others_are_still_told(make_task: MakeFolder, tmp_path: Path) -> None:
    make_task("suite/bad", files={"task.toml": IMAGE + "gpu = 1\n", "instruction.md": None})
    make_task("suite/worse", files={"task.toml": "x"})
    make_task("suite/fair", files={"task.toml": IMAGE})
    findings = lint(tmp_path / "suite")
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    assert errors == list(findings[:3])
    places = [finding.place.rpartition("/suite/")[2] for finding in errors]
    assert places == ["bad", "bad/task.toml:4", "worse/task.toml:1"]
    assert any(finding.code == "budget-wall" and finding.place.endswith("fair") for finding in findings)
    assert f"{errors[1].place}: error: unknown key 'gpu' in [environment] [load]" in str(errors[1])


def test_a_stale_lock_is_an_error(make_task: MakeFolder) -> None:
    folder = make_task()
    image = ImageLock(digest="sha256:" + "1" * 64, platform="linux/amd64")
    write_lock(folder / "suite.lock", make_lock(load_suite(folder), {"assay-base:1": image}))
    (folder / "tests/want").write_text("x")
    assert only(folder, "lock").level is Level.ERROR


def test_the_same_work_under_two_ids_is_found(make_task: MakeFolder, tmp_path: Path) -> None:
    make_task("suite/one")
    make_task("suite/two")
    assert "one, two" in only(tmp_path / "suite", "duplicate").message
    make_task("suite/two", files={"environment/files/words.txt": "z\n"})
    assert "duplicate" not in codes(tmp_path / "suite")
    assert only(tmp_path / "suite", "same-solution").level is Level.NOTE


def test_variants_are_told_together(make_family: MakeFolder) -> None:
    table = '[[variant]]\nid = "01"\nout = "o"\nspare = 1\n[[variant]]\nid = "02"\nout = "p"\n'
    folder = make_family(files={"variants.toml": table})
    assert only(folder, "grading-shared").count == 2
    assert "(and 1 more variants)" in str(only(folder, "grading-shared"))
    unused = only(folder, "variant-key-unused")
    assert "'spare'" in unused.message
    assert unused.place == str(folder / "variants.toml")


def test_what_several_families_share_is_one_line_with_their_names(
    make_task: MakeFolder, make_family: MakeFolder
) -> None:
    table = '[[variant]]\nid = "01"\nout = "o"\nspare = 1\n'
    make_family("suite/letters", files={"variants.toml": table})
    make_family("suite/lines", files={"instruction.md": "Other ~{ out }~.\n"})
    lines = lines_of(lint(make_task("suite/words", files={"task.toml": IMAGE}).parent))
    (shared,) = [line for line in lines if "[grading-shared]" in line]
    assert shared.endswith("(4 tasks: letters, lines, words)")
    assert shared.startswith("note: graded in the solver's own container")
    (alone,) = [line for line in lines if "[budget-wall]" in line]
    assert "suite/words: warning: " in alone


def test_errors_of_the_same_kind_keep_their_places(make_task: MakeFolder) -> None:
    for name in ("one", "two"):
        folder = make_task(f"suite/{name}", files={"task.toml": IMAGE, "solution/solve.sh": f"echo {name}\n"}).parent
        (folder / f"up-{name}").symlink_to("..")
    errors = [line for line in lines_of(lint(folder)) if ": error: " in line]
    assert [line.partition(": error: ")[0][-6:] for line in errors] == ["up-one", "up-two"]


def test_there_must_be_a_suite(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        lint(tmp_path / "gone")


def test_the_bundled_suite_has_no_error_and_no_duplicate() -> None:
    findings = lint("terminal")
    assert [str(finding) for finding in findings if finding.level is Level.ERROR or finding.code == "duplicate"] == []
