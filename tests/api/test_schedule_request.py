"""A schedule's file: what is wrong with it is told with file, line, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api.request import bundled_configs
from harness.api.schedule_request import check_secret, read_schedule
from harness.records.errors import ConfigError
from harness.records.schedule import JobKind, Missed

JOB = """\
[[job]]
name = "nightly"
cron = "30 2 * * *"
kind = "gold"
suite = "{suite}"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    return folder


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "schedule.toml"
    file.write_text(text.replace("{suite}", str(tmp_path / "suite")))
    return file


def test_what_is_written_is_what_is_served(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    more = 'missed = "skip"\ngrace_s = 5\noptions = { repeat = 3 }\n[alerts]\nfile = "alerts.jsonl"\n'
    schedule = read_schedule(written(tmp_path, f'time_zone = "Europe/Berlin"\nstore = "st"\n{JOB}{more}'))
    [job] = schedule.jobs
    assert (job.kind, job.missed, job.grace_s, job.options) == (JobKind.GOLD, Missed.SKIP, 5.0, {"repeat": 3})
    assert (job.zone, job.suite) == ("Europe/Berlin", str(suite))
    assert (schedule.store, schedule.alerts.file) == (str(tmp_path / "st"), str(tmp_path / "alerts.jsonl"))
    assert schedule.server.host == "127.0.0.1"
    assert read_schedule(tmp_path / "schedule.toml", "other").store == str(tmp_path / "other")
    assert type(schedule).model_validate_json(schedule.model_dump_json()) == schedule  # as it is kept in the store


def test_the_bundled_schedule_can_be_served() -> None:
    schedule = read_schedule(bundled_configs()["schedule.toml"])
    assert [job.kind for job in schedule.jobs] == [JobKind.TARGETED_GOLD, JobKind.FULL_AUDIT, JobKind.NULL]
    assert schedule.audited == ("terminal",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB.replace("30 2", "61 2"), r"schedule.toml:3: job.0.cron: '61 2 \* \* \*': not a cron line: bad minute"),
        (JOB.replace("30 2 * * *", "@daily"), "schedule.toml:3: .*a cron line has 5 fields"),
        (JOB + "mised = 'run'\n", "schedule.toml:6: job.0.mised: there is no such key — did you mean 'missed'"),
        (JOB + "missed = 'later'\n", "schedule.toml:6: job.0.missed: 'later': input should be 'run' or 'skip'"),
        (JOB + "grace_s = -1\n", "schedule.toml:6: job.0.grace_s"),
        (JOB.replace("gold", "golden"), "schedule.toml:4: job.0.kind"),
        (JOB.replace("nightly", "night ly"), "schedule.toml:2: job.0.name: .*a job's name has letters"),
        (JOB.replace("{suite}", "nowhere"), "schedule.toml:5: job.0.suite: no suite at 'nowhere'"),
        (JOB.replace('suite = "{suite}"\n', ""), "schedule.toml:1: job.0: no suite"),
        (JOB + JOB, "schedule.toml:7: job.1.name: a second job 'nightly'"),
        ('time_zone = "Europe/Berlim"\n' + JOB, "schedule.toml:1: time_zone: .*there is no time zone 'Europe/Berlim'"),
        (JOB + "[job.options]\nrepeats = 2\n", "schedule.toml:7: job.0.options.repeats: there is no such key"),
        (
            JOB + "[job.options]\nmutants = 2\n",
            "schedule.toml:7: job.0.options.mutants: an audit of kind 'gold' has no",
        ),
        (
            JOB.replace('"gold"', '"mutant"') + "[job.options]\nmutants = 0\n",
            "schedule.toml:7: job.0.options.mutants: nothing is audited",
        ),
        (JOB + "[job.options]\nrepeat = 0\n", "schedule.toml:7: job.0.options.repeat: 0: "),
        (JOB + "config = 'x.toml'\n", "schedule.toml:6: job.0.config: 'config' does not belong here"),
        (
            JOB.replace('"gold"', '"calibration-run"') + "[job.options]\nsolver = 'agent'\nconcurency = 2\n",
            "schedule.toml:8: job.0.options.concurency: there is no such key — did you mean 'concurrency'",
        ),
        (
            JOB.replace('"gold"', '"calibration-run"') + "[job.options]\nadaptive = {}\n",
            "schedule.toml:7: job.0.options.adaptive: .*a calibration run is of the whole set",
        ),
        (
            '[[job]]\nname = "a"\ncron = "0 0 * * *"\nkind = "run"\n',
            "schedule.toml:1: job.0: no configuration",
        ),
        (
            '[[job]]\nname = "a"\ncron = "0 0 * * *"\nkind = "run"\nconfig = "missing.toml"\n',
            "missing.toml: there is no such configuration file",
        ),
        ("time_zone = 'UTC'\n", "job: is missing"),
        ("job = []\n", "schedule.toml:1: job"),
        (
            JOB + "[alerts]\nwebhook = 'hooks.example.org'\n",
            "schedule.toml:7: alerts.webhook: .*no address of a webhook",
        ),
        (JOB + "[server]\nport = 99999\n", "schedule.toml:7: server.port"),
        (JOB + "[concurrency]\ntrials = 0\n", "schedule.toml:7: concurrency.trials"),
        (JOB + "[policy]\nstale_days = 0\n", "schedule.toml:7: policy.stale_days"),
        ("[[job]\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    suite: Path, tmp_path: Path, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said):
        read_schedule(written(tmp_path, text))


def test_several_problems_are_told_at_once(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2 problems") as caught:
        read_schedule(written(tmp_path, JOB.replace("30 2", "61 2").replace('"gold"', '"golden"')))
    assert "schedule.toml:3" in str(caught.value)
    assert "schedule.toml:4" in str(caught.value)


def test_a_saved_run_is_checked_with_its_options(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(f'suite = "{suite}"\nsolver = "noop"\n[adaptive]\nstop = 5\n')
    saved = f'[[job]]\nname = "weekly"\ncron = "0 0 * * 0"\nkind = "run"\nconfig = "{tmp_path}/run.toml"\n'
    [job] = read_schedule(written(tmp_path, f"{saved}options = {{ seed = 3 }}\n")).jobs
    assert (job.suite, job.config) == (str(suite), str(tmp_path / "run.toml"))
    with pytest.raises(ConfigError, match=r"schedule.toml:6: job.0.options.seed: '3'"):
        read_schedule(written(tmp_path, f"{saved}options = {{ seed = '3' }}\n"))
    (tmp_path / "run.toml").write_text(f'suite = "{suite}"\nsolvr = "noop"\n')
    with pytest.raises(ConfigError, match=r"run.toml:2: solvr: there is no such key"):
        read_schedule(written(tmp_path, saved))


def test_a_webhook_without_a_secret_is_refused_before_anything_waits(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_WEBHOOK_SECRET", raising=False)
    schedule = read_schedule(written(tmp_path, f"{JOB}[alerts]\nwebhook = 'https://hooks.example.org/a'\n"))
    with pytest.raises(ConfigError, match="a webhook needs a secret"):
        check_secret(schedule)
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "s")
    check_secret(schedule)
