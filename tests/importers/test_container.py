"""Archives that are broken, hostile or large: told with place and remedy, and nothing is written anywhere."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from random import Random

import pytest

from harness.api.archives import import_archive, lint_archive
from harness.importers import container
from harness.importers.container import Archive
from harness.records.archive import ArchiveError
from harness.records.vocabulary import Outcome
from harness.store.sqlite import SqliteStore
from tests.importers.reading import DATA, tau_episode, write_json

TRIAL = {
    "trial_name": "t",
    "is_resolved": True,
    "parser_results": {"t": "passed"},
    "failure_mode": "none",
}


def test_a_missing_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"nowhere\.json"):
        Archive(tmp_path / "nowhere.json")


def test_a_truncated_document_gives_what_is_readable(tmp_path: Path, store: SqliteStore) -> None:
    text = json.dumps([tau_episode(task) for task in range(5)])
    (tmp_path / "cut.json").write_text(text[: len(text) - 40])
    report = import_archive(tmp_path / "cut.json", store)
    assert report.runs[0].written == 4
    assert [finding.what for finding in report.unread] == ["the document ends inside it"]
    assert not report.whole


@pytest.mark.parametrize(
    ("share", "fault"), [(0.7, "ends before its end"), (1.0, "damaged"), (1.1, "other data stand behind")]
)
def test_a_gzip_file_that_is_cut_or_damaged_gives_what_is_readable(
    tmp_path: Path, store: SqliteStore, share: float, fault: str
) -> None:
    random = Random(1)
    episodes = [tau_episode(task) for task in range(50)]
    for episode in episodes:
        episode["traj"][2]["content"] = random.randbytes(2000).hex()
    data = bytearray(gzip.compress(json.dumps(episodes).encode()))
    if share == 1.0:
        data[len(data) // 2 :] = bytes(255 - byte for byte in data[len(data) // 2 :])
    data = data[: int(len(data) * share)] + b"other" * (share > 1)
    (tmp_path / "cut.json.gz").write_bytes(data)
    report = import_archive(tmp_path / "cut.json.gz", store)
    assert report.runs[0].written == 50 if share > 1 else 20 < report.runs[0].written < 40
    assert fault in "\n".join(finding.what for finding in report.unread)
    assert not report.whole


def test_gzip_files_in_a_row_are_one(tmp_path: Path) -> None:
    text = json.dumps([tau_episode(task) for task in range(3)]).encode()
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text[:500]) + gzip.compress(text[500:]) + b"\0" * 20)
    report = lint_archive(tmp_path / "a.json.gz")
    assert (report.episodes, report.findings) == (3, ())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_that_was_cut_gives_the_entries_before_the_cut(tmp_path: Path, store: SqliteStore, method: int) -> None:
    random = Random(1)
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", method) as archive:
        for number in range(8):
            with archive.open(f"t{number}/results.json", "w", force_zip64=number == 1) as entry:
                note = random.randbytes(3000).hex()
                entry.write(json.dumps({**TRIAL, "task_id": f"x{number}", "note": note}).encode())
    data = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: len(data) * 6 // 10])
    report = import_archive(tmp_path / "cut.zip", store)
    assert report.runs[0].written == 4
    told = "\n".join(finding.what for finding in report.unread)
    assert "the ZIP was cut off" in told
    assert "before its end; what stands before was read" in told
    with SqliteStore(tmp_path / "other") as other:
        assert import_archive(tmp_path / "whole.zip", other).runs[0].written == 8


def test_a_cut_zip_of_an_inspect_log(tmp_path: Path, store: SqliteStore) -> None:
    pytest.importorskip("zstandard")
    data = (DATA / "tiny.eval").read_bytes()
    (tmp_path / "cut.eval").write_bytes(data[: data.rindex(b"PK\x01\x02") - 40])
    report = import_archive(tmp_path / "cut.eval", store)
    assert report.format == "inspect"
    assert report.runs[0].written == 4
    assert "archive.cut" in {finding.rule for finding in report.unread}


def test_a_damaged_entry_is_listed_and_the_others_imported(tmp_path: Path, store: SqliteStore) -> None:
    pytest.importorskip("zstandard")
    data = bytearray((DATA / "tiny.eval").read_bytes())
    with zipfile.ZipFile(DATA / "tiny.eval") as archive:
        at = archive.getinfo("samples/sum_epoch_2.json").header_offset
    data[at + 100 : at + 140] = b"\0" * 40
    (tmp_path / "bad.eval").write_bytes(bytes(data))
    report = import_archive(tmp_path / "bad.eval", store)
    assert report.runs[0].written == 3
    assert report.runs[0].first_gaps == ("sum/1",)
    assert "sum_epoch_2" in report.unread[0].place


@pytest.mark.parametrize("name", ["../../evil.json", "/etc/evil.json", "a/../../b.json", "c:\\evil.json"])
def test_names_that_leave_the_archive_are_never_opened(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "[]")
        archive.writestr("good.json", json.dumps([tau_episode()]))
    opened = Archive(tmp_path / "a.zip")
    assert opened.names == ("good.json",)
    assert [finding.unread for finding in opened.problems] == [True]
    report = lint_archive(tmp_path / "a.zip")
    assert (report.episodes, report.findings[0].rule) == (1, "archive.path")


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("[]")
    folder = tmp_path / "archive"
    write_json(folder / "good.json", [tau_episode()])
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    opened = Archive(folder)
    assert opened.names == ("good.json",)
    assert "leads out" in opened.problems[0].what


def test_a_compression_bomb_is_stopped_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "FREE_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b"[" + b" " * (20 << 20) + b"]")
    opened = Archive(tmp_path / "bomb.zip")
    with pytest.raises(ArchiveError, match="compression bomb"):
        list(opened.members("bomb.json"))


def test_too_many_files_are_refused_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MOST_FILES", 10)
    for number in range(11):
        (tmp_path / f"{number}.txt").write_text("")
    with pytest.raises(ArchiveError, match="a folder at a time"):
        Archive(tmp_path)


def test_a_hundred_thousand_files_of_no_format_are_no_trouble(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(100_000):
            archive.writestr(f"{number}.txt", b"")
    with pytest.raises(ArchiveError, match="100,000 files"):
        lint_archive(tmp_path / "many.zip")


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "good", {"a": 1}])
def test_a_reward_that_is_no_finite_number_is_no_verdict(tmp_path: Path, store: SqliteStore, reward: object) -> None:
    write_json(tmp_path / "a.json", [tau_episode(0, reward=reward), tau_episode(1)])
    report = import_archive(tmp_path / "a.json", store)
    assert report.runs[0].outcomes[Outcome.UNGRADED] == 1
    assert not report.whole


def test_nothing_that_is_known_says_what_is_there_and_what_is_known(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"hello": 1, "world": 2})
    with pytest.raises(ArchiveError, match=r"object with hello, world.*tau-bench, tau2"):
        lint_archive(tmp_path / "a.json")


def test_the_wrong_format_is_refused_with_what_it_looks_like(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", [tau_episode()])
    with pytest.raises(ArchiveError, match="it looks like tau-bench"):
        lint_archive(tmp_path / "a.json", format="tau2")
