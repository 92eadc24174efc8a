"""Each format on archives made for it: recognised by content, mapped without inventing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.importers.recognition import importer_named, importer_names
from harness.records.archive import ArchiveError, Basis, ImportOptions
from harness.records.vocabulary import Actor, Outcome, Phase, Reason, StopReason
from tests.importers.reading import DATA, Read, tau_episode, write_json


@pytest.mark.parametrize("name", importer_names())
def test_every_importer_has_its_name_and_knows_nothing_of_an_empty_folder(name: str, tmp_path: Path) -> None:
    importer = importer_named(name)
    from harness.importers.container import Archive

    assert importer.name == name
    assert importer.recognises(Archive(tmp_path)) is None


# --- tau-bench ------------------------------------------------------------------------------------------


def test_tau_bench_zero_without_reward_info_is_no_verdict(tmp_path: Path) -> None:
    episodes = [
        tau_episode(0, reward=0.0),
        tau_episode(1, reward=0.0, reward_info=None),
        tau_episode(2, reward=1.0, reward_info=None),
        tau_episode(3, reward=0.0, reward_info=None, error="boom", traceback="…"),
    ]
    found = Read(write_json(tmp_path / "whatever.txt", episodes))
    assert found.recognition.format == "tau-bench"
    assert [e.outcome.value for e in found.episodes] == ["failed", "ungraded", "passed", "ungraded"]
    assert [e.grading.basis for e in found.episodes] == [Basis.STATED, Basis.INFERRED, Basis.INFERRED, Basis.STATED]
    assert found.episodes[1].reason is Reason.VERDICT_MISSING
    assert found.episodes[1].reward is None
    assert (found.runs[0].agent, found.runs[0].model, found.runs[0].created) == (None, None, "")


def test_tau_bench_airline_is_200_episodes_of_which_5_have_no_verdict(airline: Path) -> None:
    found = Read(airline / "v1/gpt-4o-airline.json.gz")
    ungraded = [e for e in found.episodes if e.outcome is Outcome.UNGRADED]
    assert len(found.episodes) == 200
    assert {(e.task.id, e.repeat) for e in ungraded} == {("33", 0), ("2", 1), ("9", 2), ("9", 3), ("46", 3)}
    assert {e.stop for e in ungraded} == {StopReason.STEPS}  # a turn limit, no failure
    assert found.outcomes().count("passed") == 84
    assert not found.findings
    actors = {(step.kind, step.actor) for e in found.episodes for step in e.steps()}
    assert ("reference.action", Actor.REFERENCE) in actors
    assert ("tool.call", Actor.USER) not in actors


# --- tau2 -----------------------------------------------------------------------------------------------


def _tau2(**changes: Any) -> dict[str, Any]:
    task = {"id": "7", "user_scenario": {"instructions": "Ask."}, "evaluation_criteria": {"actions": []}}
    simulation = {"id": "s", "task_id": "7", "trial": 0, "messages": [], "reward_info": {"reward": 1.0}}
    info = {"agent_info": {"implementation": "llm_agent"}, "environment_info": {"domain_name": "mock"}}
    return {"timestamp": "2026-01-01T00:00:00", "info": info, "tasks": [task], "simulations": [simulation | changes]}


@pytest.mark.parametrize(
    ("changes", "outcome", "stop"),
    [
        ({"termination_reason": "user_stop"}, "passed", StopReason.USER_ENDED),
        ({"termination_reason": "max_steps", "reward_info": {"reward": 0.0}}, "failed", StopReason.STEPS),
        ({"termination_reason": "max_steps", "reward_info": None}, "ungraded", StopReason.STEPS),
        ({"termination_reason": "infrastructure_error"}, "ungraded", StopReason.INFRASTRUCTURE),
        ({}, "passed", StopReason.UNKNOWN),
        ({"reward_info": {"reward": float("nan")}}, "ungraded", StopReason.UNKNOWN),
    ],
)  # fmt: skip
def test_tau2_ends_and_verdicts_are_two_things(
    tmp_path: Path, changes: dict[str, Any], outcome: str, stop: StopReason
) -> None:
    (episode,) = Read(write_json(tmp_path / "r.json", _tau2(**changes))).episodes
    assert (episode.outcome.value, episode.stop) == (outcome, stop)


def test_tau2_of_a_later_format_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="format_version 999 is not known"):
        Read(write_json(tmp_path / "r.json", _tau2() | {"format_version": 999}))


def test_tau2_header_that_contradicts_its_messages_is_told(tmp_path: Path) -> None:
    value = _tau2(messages=[{"role": "user", "content": "Hi", "turn_idx": 1}])
    value["info"]["user_info"] = {"implementation": "dummy_user"}
    (episode,) = Read(write_json(tmp_path / "r.json", value)).episodes
    assert (episode.mode.value, episode.mode.basis) == ("solo", Basis.AMBIGUOUS)
    assert [finding.rule for finding in episode.findings] == ["header.mode"]


def test_tau2_folder_with_an_index_names_what_is_missing_and_what_is_too_much(tmp_path: Path) -> None:
    value = _tau2()
    (simulation,) = value.pop("simulations")
    write_json(tmp_path / "results.json", value | {"simulation_index": ["s", "gone", "../../etc/passwd"]})
    write_json(tmp_path / "simulations/s.json", simulation)
    write_json(tmp_path / "simulations/extra.json", simulation | {"id": "extra", "trial": 1})
    found = Read(tmp_path)
    assert len(found.episodes) == 2
    assert [f.what for f in found.findings] == [
        "simulation '../../etc/passwd' has no file",
        "simulation 'extra' is not in simulation_index",
        "simulation 'gone' has no file",
    ]


@pytest.mark.parametrize(
    ("name", "episodes", "passed", "mode"),
    [
        ("airline_gpt-4.1_20x1.json.gz", 20, 10, "normal"),
        ("airline_toolorchestra_50x1.json.gz", 50, 28, "normal"),
        ("telecom_gpt-4.1_dual_40x1.json.gz", 40, 18, "dual_control"),
        ("telecom_gpt-4.1_solo_40x1.json.gz", 40, 20, "solo"),
        ("voice_dir", 3, 0, "full_duplex"),
    ],
)
def test_tau2_files_are_read_in_their_true_mode(
    airline: Path, name: str, episodes: int, passed: int, mode: str
) -> None:
    found = Read(airline / "tau2/results" / name)
    assert (len(found.episodes), found.outcomes().count("passed")) == (episodes, passed)
    assert {e.mode.value for e in found.episodes} == {mode}
    assert not found.findings
    users = {step.kind for e in found.episodes for step in e.steps() if step.actor is Actor.USER}
    assert ("tool.call" in users) == (mode == "dual_control")


def test_the_leaderboard_submission_contradicts_itself_record_by_record(airline: Path) -> None:
    found = Read(airline / "tau2/results/airline_toolorchestra_50x1.json.gz")
    wrong = {e.task.id: e.findings[0] for e in found.episodes if e.findings}
    # 49 labels are wrong and 10 is right: what is proposed is a permutation of the tasks.
    assert len(wrong) == 49
    assert {finding.rule for finding in wrong.values()} == {"label.task"}
    assert {f.proposal["task_id"] for f in wrong.values()} | {"10"} == {str(n) for n in range(50)}
    assert wrong["0"].proposal == {"task_id": "27"}
    assert "4 of 4 signs agree" in wrong["0"].evidence
    assert {e.task.id for e in found.episodes} == {str(n) for n in range(50)}  # nothing was applied


def test_a_sound_submission_has_no_wrong_label(airline: Path) -> None:
    found = Read(airline / "tau2/results/airline_gpt-4.1_20x1.json.gz")
    assert not [e for e in found.episodes if e.findings]


# --- HAL ------------------------------------------------------------------------------------------------


def _call(id_: str, parent: str | None, response: str, at: int, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id_,
        "op_name": "weave:///x/op/litellm.completion:v1",
        "parent_id": parent,
        "started_at": f"2026-01-01T00:00:{at:02}",
        "ended_at": f"2026-01-01T00:00:{at + 1:02}",
        "attributes": {"weave_task_id": "3"},
        "inputs": {"messages": [{"role": "system", "content": "policy"}]},
        "output": {
            "id": response,
            "model": "m-1",
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
            "choices": [{"message": message}],
        },
    }


def _hal(logging: Any) -> dict[str, Any]:
    book = {"name": "book", "kwargs": {"id": 1}}
    taken = [
        {"name": "transfer_to_human_agents", "kwargs": {}},
        book,
        {"name": "respond", "kwargs": {"content": "bye"}},
    ]
    entry = {"reward": 0.0, "taken_actions": taken, "task": {"actions": [book], "instruction": "Book."}}
    results = {"accuracy": 0.0, "total_cost": 1.0}
    config = {"agent_name": "tool agent", "benchmark_name": "taubench_airline", "date": "2026-01-01"}
    return {
        "config": config,
        "results": results,
        "raw_eval_results": {"3": entry, "4": "ERROR: boom"},
        "raw_logging_results": logging,
    }


def _tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments)}}]}


def test_hal_old_log_gives_spans_and_the_calls_that_attribution_needs(tmp_path: Path) -> None:
    first = _call("a", None, "r1", 1, _tool("transfer_to_human_agents", {}))
    log = [
        _call("c", None, "r2", 5, {"content": "bye"}),
        _call("b", "a", "r1", 1, first["output"]["choices"][0]["message"]),
        first,
    ]
    found = Read(write_json(tmp_path / "x_UPLOAD.json", _hal(log)))
    episode, crashed = found.episode("3"), found.episode("4")
    steps = list(episode.steps())
    assert [(s.span, s.parent) for s in steps if s.kind == "span"] == [("a", None), ("b", "a"), ("c", None)]
    assert [s.payload["gen_ai.tool.name"] for s in steps if s.actor is Actor.GRADER] == ["book"]
    assert [s.phase for s in steps if s.actor is Actor.GRADER] == [Phase.GRADING]
    assert (episode.outcome, episode.attribution.value, episode.grading.value) == (Outcome.FAILED, "matched", "yes")
    assert (crashed.outcome, crashed.detail) == (Outcome.UNGRADED, "the result is a text, not a verdict")
    assert found.runs[0].stated["total_cost"] == 1.0


def test_hal_new_log_says_that_nested_entries_may_be_one_response(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    times = [("2026-01-01T00:00:00", "2026-01-01T00:00:09"), ("2026-01-01T00:00:01", "2026-01-01T00:00:08")]
    metadata = [{"usage": usage, "started_at": start, "ended_at": end} for start, end in times]
    said = {"role": "assistant", **_tool("transfer_to_human_agents", {})}
    log = {"3": {"messages": [said, {"role": "assistant", "content": "bye"}], "call_metadata": metadata, "model": "m"}}
    found = Read(write_json(tmp_path / "u.json", _hal(log)))
    assert [finding.rule for finding in found.findings] == ["usage.nested"]
    assert found.episode("3").attribution.value == "matched"


def test_hal_doubled_injection_supports_no_verdict(airline: Path) -> None:
    options = ImportOptions(
        reference=str(airline / "v1/tasks.json"), executed=str(airline / "v1/gpt-4o-airline.json.gz")
    )
    found = Read(airline / "hal/hal_like_taken_actions.json.gz", options)
    by_set = {name: [e for e in found.episodes if e.run == name] for name in ("A_end", "B_middle", "C_twice")}
    assert [len(episodes) for episodes in by_set.values()] == [50, 48, 48]
    assert [e.outcome for e in by_set["C_twice"]].count(Outcome.INVALID) == 32
    assert all("injected 2 times" in e.flags[0] for e in by_set["C_twice"] if e.outcome is Outcome.INVALID)
    assert {e.attribution.value for e in by_set["B_middle"]} == {"matched", "ambiguous"}
    assert found.recognition.missing[-2:] == ("tasks: give --reference", "model log: give --executed")


def test_an_encrypted_upload_says_what_to_do(tmp_path: Path) -> None:
    write_json(tmp_path / "run_UPLOAD.json.encrypted", {"encrypted_data": "", "salt": ""})
    with pytest.raises(ArchiveError, match="decrypt it"):
        Read(tmp_path)


# --- Inspect --------------------------------------------------------------------------------------------


def test_inspect_eval_log_with_zstandard_entries() -> None:
    pytest.importorskip("zstandard")
    found = Read(DATA / "tiny.eval")
    assert found.recognition.format == "inspect"
    assert [(e.task.id, e.repeat, e.outcome.value) for e in found.episodes] == [
        ("sky/colour", 0, "failed"),
        ("sky/colour", 1, "failed"),
        ("sum", 0, "passed"),
        ("sum", 1, "passed"),
    ]
    steps = list(found.episode("sum").steps())
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 10}
    assert [s.payload["usage_raw"] for s in steps if s.kind == "model.call"] == [usage, usage]
    assert [s.payload["arguments"] for s in steps if s.kind == "tool.call"] == [{"x": 1, "y": 1}]
    assert (found.runs[0].repeats, found.runs[0].tasks) == (2, ("sum", "sky/colour"))


def _inspect(*samples: dict[str, Any], version: int = 2) -> dict[str, Any]:
    spec = {"task": "t", "model": "m", "created": "2026-01-01T00:00:00+00:00", "config": {"epochs": 1}}
    return {"version": version, "status": "success", "eval": spec, "samples": list(samples)}


@pytest.mark.parametrize(
    ("sample", "outcome", "reason", "stop"),
    [
        ({"scores": {"s": {"value": "C"}}, "completed_at": "2026-01-01T00:00:01"}, "passed", None, StopReason.FINISHED),
        ({"scores": {"s": {"value": 0.5}}, "limit": {"type": "token", "limit": 9}}, "failed", None, StopReason.TOKENS),
        ({"scores": {}, "error": {"message": "E"}}, "ungraded", Reason.SOLVER_ERROR, StopReason.UNKNOWN),
        ({"scores": {"s": {"value": float("nan")}}}, "ungraded", Reason.VERDICT_NOT_FINITE, StopReason.UNKNOWN),
        ({"scores": {"s": {"value": "GRID: C"}}}, "ungraded", Reason.VERDICT_MALFORMED, StopReason.UNKNOWN),
        ({"scores": {"a": {"value": 1}, "b": {"value": 0}}}, "ungraded", Reason.VERDICT_CONFLICT, StopReason.UNKNOWN),
        ({"scores": {"a": {"value": "C"}, "b": {"value": 1}}}, "passed", None, StopReason.UNKNOWN),
    ],
)  # fmt: skip
def test_inspect_scores(
    tmp_path: Path, sample: dict[str, Any], outcome: str, reason: Reason | None, stop: StopReason
) -> None:
    (episode,) = Read(write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1} | sample))).episodes
    assert (episode.outcome.value, episode.reason, episode.stop) == (outcome, reason, stop)


def test_inspect_scorer_can_be_chosen(tmp_path: Path) -> None:
    scores = {"a": {"value": "C"}, "b": {"value": "I"}}
    path = write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1, "scores": scores}))
    assert Read(path, ImportOptions(scorer="b")).outcomes() == ["failed"]


def test_inspect_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="version 999 is not known"):
        Read(write_json(tmp_path / "log.json", _inspect({"id": 1, "epoch": 1}, version=999)))


def test_inspect_grader_calls_are_the_graders(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 1}
    events = [
        {"event": "span_begin", "id": "g", "type": "scorers"},
        {"event": "span_begin", "id": "h", "type": "scorer", "parent_id": "g"},
        {"event": "model", "uuid": "1", "span_id": "h", "model": "judge", "output": {"usage": usage}},
        {"event": "model", "uuid": "2", "span_id": "s", "model": "m", "output": {"usage": usage}},
    ]
    (episode,) = Read(write_json(tmp_path / "l.json", _inspect({"id": 1, "epoch": 1, "events": events}))).episodes
    assert [(s.span, s.actor) for s in episode.steps()] == [("1", Actor.GRADER), ("2", Actor.AGENT)]


# --- Harbor and ATIF ------------------------------------------------------------------------------------


def test_harbor_job_with_trajectories() -> None:
    found = Read(DATA / "harbor_job")
    assert found.recognition.format == "harbor"
    ends = {(e.task.id, e.repeat): (e.outcome.value, e.stop, e.reason) for e in found.episodes}
    assert ends == {
        ("hello", 0): ("passed", StopReason.FINISHED, None),
        ("hello", 1): ("failed", StopReason.FINISHED, None),
        ("slow", 0): ("passed", StopReason.TIME, None),  # a time-out of the agent is a stop, not a verdict
        ("broken", 0): ("ungraded", StopReason.FINISHED, Reason.GRADER_TIMEOUT),
        ("crash", 0): ("ungraded", StopReason.INFRASTRUCTURE, Reason.VERDICT_MISSING),
    }
    hello = found.episode("hello")
    assert (hello.seconds, hello.cost_usd, hello.task.instruction) == (30.0, 0.003, "Write hello to /app/hello.txt")
    assert [s.kind for s in hello.steps()] == [
        "message", "message", "model.call", "tool.call", "tool.result", "message", "model.call",
    ]  # fmt: skip
    assert (found.runs[0].scaffold, found.runs[0].model, found.runs[0].suite) == ("toy-agent", "toy/model-1", "toys")


def test_harbor_result_that_contradicts_the_verifier_and_a_foreign_version(tmp_path: Path) -> None:
    trial = json.loads((DATA / "harbor_job/hello__aaa/result.json").read_text())
    write_json(tmp_path / "a/result.json", trial)
    (tmp_path / "a/verifier").mkdir()
    (tmp_path / "a/verifier/reward.txt").write_text("0\n")
    write_json(tmp_path / "b/result.json", trial | {"schema_version": 9})
    found = Read(tmp_path)
    assert [finding.rule for e in found.episodes for finding in e.findings] == ["reward.file"]
    assert [(finding.rule, finding.unread) for finding in found.findings] == [("archive.version", True)]


def test_atif_of_a_later_version_is_listed(tmp_path: Path) -> None:
    value = json.loads((DATA / "harbor_job/hello__aaa/agent/trajectory.json").read_text())
    write_json(tmp_path / "old.json", value)
    write_json(tmp_path / "new.json", value | {"schema_version": "ATIF-v9.0"})
    found = Read(tmp_path)
    assert found.outcomes() == ["ungraded"]
    assert [finding.what for finding in found.findings] == [
        "schema_version ATIF-v9.0 is not known; this version reads up to ATIF-v1.8"
    ]


def test_atif_totals_that_do_not_add_up(tmp_path: Path) -> None:
    value = json.loads((DATA / "harbor_job/hello__aaa/agent/trajectory.json").read_text())
    value["final_metrics"]["total_prompt_tokens"] = 500
    (episode,) = Read(write_json(tmp_path / "t.json", value)).episodes
    assert [(f.rule, f.what) for f in episode.findings] == [("totals.usage", "500, its steps give 250")]


# --- Terminal-Bench and SWE-bench -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolved", "tests", "mode", "outcome", "reason", "stop"),
    [
        (True, {"t": "passed"}, "agent_timeout", "passed", None, StopReason.TIME),
        (False, {"t": "failed"}, "none", "failed", None, StopReason.FINISHED),
        (False, None, "test_timeout", "ungraded", Reason.GRADER_TIMEOUT, StopReason.UNKNOWN),
        (None, None, "unknown_agent_error", "ungraded", Reason.SOLVER_ERROR, StopReason.SOLVER_ERROR),
        (False, None, "unset", "ungraded", Reason.VERDICT_MISSING, StopReason.UNKNOWN),
    ],
)
def test_terminal_bench_records(
    tmp_path: Path, resolved: Any, tests: Any, mode: str, outcome: str, reason: Reason | None, stop: StopReason
) -> None:
    trial: dict[str, Any] = {
        "task_id": "chess",
        "trial_name": "chess.1",
        "total_input_tokens": 0,
        "total_output_tokens": 0,
    }
    trial |= {"is_resolved": resolved, "parser_results": tests, "failure_mode": mode}
    write_json(tmp_path / "run/results.json", {"results": [trial], "accuracy": 0.0, "n_resolved": 0})
    metadata = {"agent_name": "terminus", "model_name": "m", "dataset_name": "core", "n_attempts": 1}
    write_json(tmp_path / "run/run_metadata.json", metadata)
    found = Read(tmp_path)
    (episode,) = found.episodes
    assert (episode.outcome.value, episode.reason, episode.stop) == (outcome, reason, stop)
    assert episode.usage is None  # zero on both sides is not counted
    assert (found.runs[0].scaffold, found.runs[0].suite) == ("terminus", "core")


def test_swe_bench_report_grades_only_what_is_listed_as_graded(tmp_path: Path) -> None:
    report = {
        "submitted_ids": ["a", "b", "c", "d"],
        "resolved_ids": ["a"],
        "unresolved_ids": ["b"],
        "error_ids": ["c"],
        "empty_patch_ids": ["d"],
        "incomplete_ids": ["e"],
        "schema_version": 2,
        "total_instances": 5,
        "resolved_instances": 1,
    }
    write_json(tmp_path / "m.run.json", report)
    lines = [{"instance_id": i, "model_name_or_path": "m-1", "model_patch": f"diff {i}"} for i in "abc"]
    (tmp_path / "preds.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    found = Read(tmp_path)
    assert {e.task.id: e.outcome.value for e in found.episodes} == {
        "a": "passed", "b": "failed", "c": "ungraded", "d": "ungraded",
    }  # fmt: skip
    assert found.runs[0].tasks == ("a", "b", "c", "d", "e")
    assert found.runs[0].model == "m-1"
    assert [step.payload["content"] for step in found.episode("a").steps()] == ["diff a"]


def test_swe_bench_patch_not_applied_means_two_things(tmp_path: Path) -> None:
    flags = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": False, "resolved": False}
    for instance, log in (("timeout", ">>>>> Tests Timed Out"), ("apply", ">>>>> Patch Apply Failed")):
        folder = tmp_path / "run/model" / instance
        write_json(folder / "report.json", {instance: flags})
        (folder / "test_output.txt").write_text(log)
    found = Read(tmp_path)
    assert found.episode("timeout").outcome is Outcome.UNGRADED
    assert found.episode("timeout").grading.basis is Basis.AMBIGUOUS
    assert found.episode("apply").outcome is Outcome.FAILED


def test_swe_bench_predictions_alone_are_ungraded(tmp_path: Path) -> None:
    value = [{"instance_id": "a", "model_name_or_path": "m", "model_patch": "diff"}]
    assert Read(write_json(tmp_path / "p.json", value)).outcomes() == ["ungraded"]


# --- OpenTelemetry and flat -----------------------------------------------------------------------------


def _otel(*events: dict[str, Any]) -> dict[str, Any]:
    def attribute(key: str, value: Any) -> dict[str, Any]:
        kind = "intValue" if isinstance(value, int) else "stringValue"
        return {"key": key, "value": {kind: str(value)}}

    chat: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.provider.name": "openai",
    }
    chat |= {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", "gen_ai.tool.call.arguments": '{"p": 1}'}
    spans: list[dict[str, Any]] = [
        {
            "traceId": "t1",
            "spanId": "1",
            "name": "invoke_agent",
            "startTimeUnixNano": "1000000000",
            "events": list(events),
        },
        {"traceId": "t1", "spanId": "2", "parentSpanId": "1", "name": "chat", "startTimeUnixNano": "2000000000"},
        {"traceId": "t1", "spanId": "3", "parentSpanId": "1", "name": "tool", "startTimeUnixNano": "3000000000"},
    ]
    for span, own in zip(spans, ({}, chat, tool), strict=True):
        span["attributes"] = [attribute(key, value) for key, value in own.items()]
        span["endTimeUnixNano"] = "4000000000"
    service = {"attributes": [attribute("service.name", "shop")]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": spans}]}]}


def test_otel_trace_is_an_ungraded_episode_with_spans(tmp_path: Path) -> None:
    found = Read(write_json(tmp_path / "otlp.json", _otel()))
    (episode,) = found.episodes
    assert episode.outcome is Outcome.UNGRADED
    spans = [step for step in episode.steps() if step.kind == "span"]
    assert [(step.span, step.parent) for step in spans] == [("1", None), ("2", "1"), ("3", "1")]
    assert spans[1].payload["usage_raw"] == {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    assert [s.payload["arguments"] for s in episode.steps() if s.kind == "tool.call"] == [{"p": 1}]
    assert (found.runs[0].suite, found.runs[0].model) == ("shop", "m")


def test_otel_evaluation_event_is_a_verdict(tmp_path: Path) -> None:
    score = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 1.0}}
    event = {"name": "gen_ai.evaluation.result", "attributes": [score]}
    lines = "\n".join(json.dumps(_otel(event)) for _ in range(2))
    (tmp_path / "otlp.jsonl").write_text(lines)
    (episode,) = Read(tmp_path / "otlp.jsonl").episodes
    assert episode.reason is Reason.VERDICT_CONFLICT  # the same trace on two lines has two events
    assert Read(write_json(tmp_path / "one.json", _otel(event))).outcomes() == ["passed"]


def test_flat_matrix_is_a_run_per_agent_date_and_trial(tmp_path: Path) -> None:
    rows = [
        "agent,date,task,trial,outcome,cost_usd,steps",
        "a,2026-01-01,x,1,1,,5",
        "a,2026-01-01,x,2,0,0.5,",
        "b,,x,1,,,",
    ]
    (tmp_path / "m.csv").write_text("\n".join([*rows, "a,2026-01-01,y,1,maybe,,", "too,few"]) + "\n")
    found = Read(tmp_path / "m.csv")
    assert [run.key for run in found.runs] == ["a 2026-01-01 #1", "a 2026-01-01 #2", "b #1"]
    assert [(e.outcome.value, e.cost_usd, e.step_count) for e in found.episodes] == [
        ("passed", None, 5),
        ("failed", 0.5, None),
        ("ungraded", None, None),
    ]
    assert [finding.what for finding in found.findings] == [
        "outcome 'maybe' is neither passed, failed, ungraded, invalid, 0 nor 1",
        "2 fields where the header has 7",
    ]
    assert found.episodes[0].source.offset == len(rows[0]) + 1


def test_flat_rows_that_a_note_calls_ungraded_are_not_failed(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,task,outcome,note\na,x,0,ungraded\na,y,0,\n")
    found = Read(tmp_path / "m.csv")
    assert [episode.outcome.value for episode in found.episodes] == ["ungraded", "failed"]
    assert found.episodes[0].grading.evidence == "note is 'ungraded'"
