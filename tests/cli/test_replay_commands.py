"""assay replay, replay show and migrate, as a shell sees them: on archives of the small world."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.api.replays_keeping import kept_replays
from harness.records.replay import Invalid, RecordedEpisode
from harness.records.vocabulary import Actor, Outcome
from harness.store.sqlite import SqliteStore
from tests.cli.inside import Ended, assay
from tests.replay.archives import AIRLINE, DESK, needs_airline, simulation, write_results
from tests.replay.world import Recorder, alone, edited, index_of, usual

GRADER = ("--grader", "tau2@0.1")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no store but the test's own


def trials(*episodes: RecordedEpisode) -> list[RecordedEpisode]:
    return [replace(episode, repeat=number) for number, episode in enumerate(episodes)]


def archive(path: Path, *episodes: RecordedEpisode, rewards: tuple[float | None, ...] = ()) -> Path:
    given = rewards or (1.0,) * len(episodes)
    made = [simulation(one, n, given[n]) for n, one in enumerate(trials(*episodes))]
    return write_results(path, made, trials=len(episodes))


def replay(path: object, *more: object, mode: str = "normal") -> Ended:
    return assay("replay", path, "--environment", DESK, "--mode", mode, *more)


def test_a_true_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", usual(), usual())
    ended = replay(path, *GRADER)
    assert ended.code == 0, ended.err
    assert "2 of 2 planned episodes read (tau2)" in ended.out
    assert "calls: 12: 12 same" in ended.out
    assert "required calls done: 6 of 6" in ended.out
    assert "tau2@0.1: 2 of 2 valid passed, 100.0 %" in ended.out
    assert "recorded verdicts given again: 2 of 2" in ended.out
    assert "kept nowhere" in ended.err


def test_the_whole_report_as_json(tmp_path: Path) -> None:
    wrong = edited(usual(), index_of(usual(), "balance") + 1, content='{"cash": 121}')
    path = archive(tmp_path / "results.json", usual(), wrong, rewards=(0.0, 1.0))
    found = replay(path, *GRADER, "--json")
    assert found.code == 3
    report = found.json
    assert (report["planned"], report["valid"], report["passed"]) == (2, 1, 1)
    assert (report["rate"], report["bounds"]) == (1.0, [0.5, 1.0])  # m/v, and [m/n, (m + n − v)/n]
    assert report["invalid"] == {"diverged": 1}
    assert report["reproduced"]["moved"] == {"t/0": "failed → passed"}
    assert report["header"]["archive"].startswith("sha256:")
    row = report["episodes"][1]
    assert row["fidelity"]["detail"] == "balance: cash: 121 became 120"
    assert (row["grade"]["outcome"], row["end_state"]) == ("invalid", None)


def test_the_wrong_mode_is_invalid_for_the_whole_file(tmp_path: Path) -> None:
    solo = write_results(tmp_path / "solo.json", [simulation(alone())], solo=True)
    ended = replay(solo, *GRADER)
    assert ended.code == 3
    assert "invalid, and in no mean: 1 (1 mode)" in ended.out
    assert "of all 1 planned: 0.0 to 100.0 %" in ended.out
    assert replay(solo, mode="solo").code == 0


def test_one_episode_of_another_mode_takes_the_whole_file_along(tmp_path: Path) -> None:
    quiet = Recorder().says(Actor.USER, "hi").calls("balance").says(Actor.AGENT, "100").says(Actor.USER, "###STOP###")
    path = archive(tmp_path / "results.json", quiet.episode(), usual())  # in the first, the user calls nothing
    report = replay(path, "--json", mode="deaf").json
    assert report["invalid"] == {"mode": 2}
    assert "t/1" in report["refused"]
    assert "its user called tools" in report["refused"]
    assert report["counts"] == {}


def test_a_mode_that_is_not_offered_is_an_error_before_the_first_step(tmp_path: Path) -> None:
    ended = replay(archive(tmp_path / "results.json", usual()), mode="voice")
    assert ended.code == 2
    assert "its modes are: normal, solo, deaf" in ended.err
    assert ended.out == ""


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", usual(), usual(), usual())
    path.write_bytes(path.read_bytes()[:-900])
    ended = replay(path, *GRADER, "--json")
    assert ended.code == 3
    report = ended.json
    assert (report["planned"], report["valid"]) == (3, 2)  # as the header states
    assert report["bounds"] == pytest.approx([2 / 3, 1.0])
    assert len(report["unread"]) == 1
    assert "byte" in report["unread"][0]["place"] or "ends" in report["unread"][0]["what"]


def test_two_records_of_one_trial_with_different_outcomes(tmp_path: Path) -> None:
    twice = [simulation(usual(), 0, 1.0), simulation(usual(), 1, 0.0), simulation(replace(usual(), repeat=1), 2, 1.0)]
    report = replay(write_results(tmp_path / "results.json", twice, trials=2), *GRADER, "--json").json
    assert (report["planned"], report["read"], report["valid"]) == (2, 2, 1)
    assert report["episodes"][0]["grade"]["outcome"] == "invalid"
    assert report["notes"] == ["1 second record of a trial, 1 trial with another outcome"]


def test_normalisations_are_chosen_by_name(tmp_path: Path) -> None:
    at = index_of(usual(), "balance") + 1
    path = archive(tmp_path / "results.json", edited(usual(), at, content='{"cash":120.0}'))
    assert replay(path).code == 0
    assert "cosmetic under number-form (1)" in replay(path).out
    strict = replay(path, "--normalise", "none", "--json")
    assert (strict.code, strict.json["invalid"]) == (3, {"diverged": 1})
    assert replay(path, "--normalise", "everything").code == 2


def test_replaying_twice_flags_what_is_declared_not_to_be_deterministic(tmp_path: Path) -> None:
    made = Recorder().says(Actor.USER, "roll").calls("dice").says(Actor.AGENT, "so").says(Actor.USER, "###STOP###")
    ended = replay(archive(tmp_path / "results.json", made.episode()), "--twice")
    assert ended.code == 0
    assert "not deterministic: 1 episode, the first t/0: step 2: dice is not deterministic" in ended.out


def test_restoring_says_what_it_rests_on(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", *[usual()] * 4, rewards=(1.0, 1.0, 1.0, None))
    taken = replay(path, "--restore-ungraded", "--json").json["taken"]
    assert taken[0].startswith("--grader tau2@1.0+without-end: it gives 3 of 3 recorded verdicts again")
    report = replay(path, "--restore-ungraded", *GRADER, "--json").json
    assert report["restored"]["restored"] == 0
    assert report["episodes"][3]["restored"] is None
    assert (report["restored"]["before"], report["restored"]["after"]) == ([0.75, 1.0], [0.75, 1.0])
    report = replay(path, "--restore-ungraded", "--fidelity", 0.3, *GRADER, "--json").json
    (stratum,) = report["restored"]["strata"]
    assert stratum["lower"] == pytest.approx(0.05 ** (1 / 3))
    assert (stratum["termination"], stratum["write_required"], stratum["checkpoint"]) == ("user_stop", True, "matched")
    assert report["episodes"][3]["restored"] == "passed"
    assert report["episodes"][3]["recorded"] == "ungraded"
    assert report["restored"]["after"] == [1.0, 1.0]


def test_only_the_first_episodes(tmp_path: Path) -> None:
    report = replay(archive(tmp_path / "results.json", usual(), usual()), "--limit", 1, "--json").json
    assert (report["planned"], report["read"]) == (1, 1)
    assert report["notes"] == ["the first 1 episode, as asked"]


def test_a_replay_is_kept_beside_the_old_scores_of_the_run_that_it_is_of(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", usual(), usual(), rewards=(0.0, 1.0))
    store = ("--store", tmp_path / "store")
    run = assay("import", path, *store, "--json").json["runs"][0]["run"]
    ended = replay(path, *GRADER, *store)
    assert f"kept in {run}; the old scores stay" in ended.out
    again = replay(run, *GRADER, *store, "--json")
    assert again.code == 0, again.err
    assert again.json["kept_in"] == [run]
    with SqliteStore(tmp_path / "store") as opened:
        (first, rows), (second, others) = kept_replays(opened, run)
        old = [trial.result.outcome for trial in opened.trials(run) if trial.result is not None]
    assert first.archive == second.archive
    assert old == [Outcome.FAILED, Outcome.PASSED]
    assert [row.trial for row in rows] == [row.trial for row in others]
    assert [row.verdict for row in rows] == [row.verdict for row in others] == [Outcome.PASSED] * 2
    assert [row.end_state for row in rows] == [row.end_state for row in others]
    assert assay("verify", run, *store).code == 0
    assay("export", run, "--to", "jsonl", "--out", tmp_path / "run.jsonl", *store)
    corrections = next(tmp_path.glob("*corrections*"))
    assert json.loads(corrections.read_text().splitlines()[0])["new"] == "passed"


def test_nothing_is_kept_when_that_is_asked_or_the_mode_was_wrong(tmp_path: Path) -> None:
    path, store = archive(tmp_path / "results.json", usual()), ("--store", tmp_path / "store")
    run = assay("import", path, *store, "--json").json["runs"][0]["run"]
    replay(run, *store, "--no-keep")
    replay(run, *store, mode="solo")
    with SqliteStore(tmp_path / "store") as opened:
        assert list(kept_replays(opened, run)) == []


def test_a_run_of_ours_replays_to_the_same_at_every_step(tmp_path: Path) -> None:
    """The bundled conversations, with a user and without, each in the environment and mode that it recorded."""
    store = ("--store", tmp_path / "store")
    tasks = ("--task", "desk*/*", "--task", "bookings/*")
    ran = assay("run", "--suite", "airline", "--solver", "reference", *tasks, *store)
    assert ran.code == 0, ran.err
    where = ("--environment", "recorded", "--mode", "recorded")
    ended = assay("replay", "latest", *where, "--grader", "conversation@1", "--twice", *store, "--json")
    assert ended.code == 0, ended.err
    report = ended.json
    counts = report["counts"]
    planned = report["planned"]
    assert report["valid"] == report["passed"] == planned > 10
    assert counts["same"] == counts["compared"] == counts["steps"] > planned
    # Both ends, and every call that wrote.
    assert counts["checkpoints_same"] == counts["checkpoints"] >= 2 * planned + counts["required"]
    assert set(report["header"]["mode"].split(", ")) == {"normal", "solo"}
    assert report["reproduced"]["moved"] == {}
    assert assay("verify", "latest", *store).code == 0
    wrong = assay("replay", "latest", "--environment", "recorded", "--mode", "normal", *store, "--json")
    assert wrong.json["invalid"] == {"mode": planned}  # a run of several modes was not recorded in one of them


def test_recorded_is_for_runs_of_ours(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", usual())
    ended = assay("replay", path, "--environment", DESK, "--mode", "recorded")
    assert ended.code == 2
    assert "`recorded` is for runs of ours" in ended.err


def test_one_episode_step_by_step(tmp_path: Path) -> None:
    at = index_of(usual(), "book", 1)
    wrong = edited(usual(), at + 1, content='{"booked": 30, "cash": 151}')
    path = archive(tmp_path / "results.json", usual(), wrong)
    ended = assay("replay", "show", path, "t/1", "--environment", DESK, "--mode", "normal")
    assert ended.code == 3
    assert f"first divergence at step {at}; 16.7 % of the calls diverge" in ended.out
    assert 'recorded  {"booked": 30, "cash": 151}' in ended.out
    assert 'replayed  {"booked": 30, "cash": 150}' in ended.out
    assert "key: cash: 151 became 150; required; state sha256:" in ended.out
    whole = assay("replay", "show", path, "t/0", "--environment", DESK, "--mode", "normal", "--json")
    assert whole.code == 0
    assert [step["match"] for step in whole.json["steps"]] == ["same"] * 6
    missing = assay("replay", "show", path, "t/7", "--environment", DESK, "--mode", "normal")
    assert missing.code == 2
    assert "did you mean" in missing.err


@pytest.mark.parametrize("asked", [("no-such-file.json",), ("results.json",)])
def test_what_cannot_be_replayed_says_what_to_do(tmp_path: Path, asked: tuple[str, ...]) -> None:
    (tmp_path / "results.json").write_text("[1, 2]")
    ended = replay(tmp_path / asked[0])
    assert ended.code == 2
    assert "error: " in ended.err
    assert ("no such file, and no store" in ended.err) == (asked[0] == "no-such-file.json")


def test_a_conversion_that_keeps_everything_moves_nothing(tmp_path: Path) -> None:
    wrong = edited(usual(), index_of(usual(), "balance") + 1, content='{"cash": 121}')
    path = archive(tmp_path / "results.json", usual(), wrong)
    checking = ("--check", "--environment", DESK, "--mode", "normal", *GRADER)
    ended = assay("migrate", path, "--to", "jsonl", "--out", tmp_path / "run.jsonl", *checking)
    assert ended.code == 0, ended.out
    assert "nothing moved" in ended.out
    assert (tmp_path / "run.jsonl").stat().st_size > 0


def moved_by_atif(tmp_path: Path, episode: RecordedEpisode) -> dict[str, tuple[str | None, str | None]]:
    """What a conversion into ATIF changes of an episode."""
    path = archive(tmp_path / "results.json", episode)
    where = ("--environment", DESK, "--mode", "normal", *GRADER)
    ended = assay("migrate", path, "--to", "atif", "--check", *where, "--json")
    assert ended.code == 4
    assert ended.json["moved"] == 1
    return {one["what"]: (one["before"], one["after"]) for one in ended.json["differences"]}


def test_a_conversion_that_loses_the_verdict_is_told_episode_by_episode(tmp_path: Path) -> None:
    made = Recorder().says(Actor.USER, "hi").calls("balance").says(Actor.AGENT, "100").says(Actor.USER, "###STOP###")
    moved = moved_by_atif(tmp_path, made.episode())
    assert moved["outcome"] == ("failed", "ungraded")  # there is no place for the task in a trajectory
    assert moved["recorded"] == ("passed 1.0", "ungraded None")
    assert not moved.keys() & {"calls", "replay", "end state"}


def test_a_conversion_that_loses_the_users_calls_is_told(tmp_path: Path) -> None:
    """In ATIF only agents call tools: of a dual-control episode it keeps half, which replays well by itself."""
    before, after = moved_by_atif(tmp_path, usual())["end state"]
    assert before is not None
    assert before != after
    assert "calls" in moved_by_atif(tmp_path, usual())


def test_migrating_without_a_check_or_a_place_to_write_is_nothing(tmp_path: Path) -> None:
    path = archive(tmp_path / "results.json", usual())
    assert assay("migrate", path, "--to", "jsonl").code == 2
    assert assay("migrate", path, "--to", "jsonl", "--check").code == 2
    assert assay("migrate", path, "--to", "jsonl", "--out", tmp_path / "run.jsonl").code == 0


@needs_airline
def test_tau_benchs_archive_reproduces_every_recorded_reward(tmp_path: Path) -> None:
    asked = ("--environment", "airline@v1", "--environment-data", AIRLINE, "--mode", "normal", "--json")
    ended = assay("replay", AIRLINE / "v1/gpt-4o-airline.json.gz", *asked, "--grader", "tau-bench@718ffa1")
    report = ended.json
    assert (report["planned"], report["replayed"], report["valid"], report["passed"]) == (200, 200, 195, 84)
    assert report["bounds"] == [0.42, 0.445]
    assert report["reproduced"] == {"recorded": 195, "compared": 195, "same": 195, "moved": {}}
    assert ended.code == 3  # five were never graded, and the rule grades no episode without an end


@needs_airline
def test_what_is_restored_is_what_the_true_record_says(tmp_path: Path) -> None:
    """Action lists whose grading went wrong or missing, derived from tau-bench's own archive: that has the truth."""
    truth = {}
    for value in json.loads(gzip.decompress((AIRLINE / "v1/gpt-4o-airline.json.gz").read_bytes())):
        truth[str(value["task_id"]), value["trial"]] = "passed" if value["reward"] else "failed"
    tasks, executed = AIRLINE / "v1/tasks.json", AIRLINE / "v1/gpt-4o-airline.json.gz"
    asked = ("--environment", "airline@v1", "--environment-data", AIRLINE, "--mode", "normal", "--json")
    rule = ("--grader", "tau-bench@718ffa1+without-end", "--data", tasks, "--restore-ungraded")
    path = AIRLINE / "hal/hal_like_taken_actions.json.gz"
    report = assay("replay", path, *asked, *rule, "--reference", tasks, "--executed", executed).json
    restored = [row for row in report["episodes"] if row["restored"] is not None]
    assert len(restored) == report["restored"]["restored"] == 21
    assert all(row["restored"] == truth[row["task"], row["repeat"]] for row in restored)
    assert not any(row["recorded"] in ("passed", "failed") for row in restored)
    unsure = assay("replay", path, *asked, "--grader", "tau-bench@718ffa1+without-end", "--data", tasks).json
    assert unsure["invalid"] == {"actors": 146}  # without the reference, whose actions they are is not known
    kept = [line for line in report["restored"]["strata"] if line["ungraded"] and not line["restored"]]
    assert [(line["write_required"], line["agree"], line["graded"], line["ungraded"]) for line in kept] == [
        (True, 40, 40, 16)  # 40 of 40 bear out 0.928, not 0.95: they stay in the interval
    ]
    before, after = report["restored"]["before"], report["restored"]["after"]
    assert before[0] < after[0] < after[1] < before[1]


def test_invalid_reasons_are_words_of_the_record() -> None:
    assert [one.value for one in Invalid] == ["mode", "actors", "tool", "diverged", "unreachable", "truncated"]
