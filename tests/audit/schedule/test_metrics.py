"""The page for Prometheus: what is unknown has no sample, and names from outside are escaped."""

from __future__ import annotations

import re

from harness.audit.schedule.metrics import Figures, JobFigures, SuiteFigures, metrics_text
from harness.records.schedule import Firing, FiringState, Result, Ruling

from .scenes import job

SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+]+')


def firing(result: Result) -> Firing:
    return Firing(
        number=7,
        job=job(),
        due="2026-03-01T07:00:00.000000+00:00",
        first_due="2026-03-01T07:00:00.000000+00:00",
        ruling=Ruling.LATE,
        state=FiringState.OVER,
        claimed="2026-03-01T07:10:00.000000+00:00",
        claimed_by="process 1 on here",
        started="2026-03-01T07:10:02.000000+00:00",
        finished="2026-03-01T07:30:02.500000+00:00",
        lateness_s=602.0,
        result=result,
    )


def page(suite: SuiteFigures, *jobs: JobFigures, slots: int | None = None) -> list[str]:
    text = metrics_text(Figures(jobs, (suite,), slots, 1, 0.0, 0, draining=False))
    assert text.endswith("\n")
    lines = text.splitlines()
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
    return lines


def test_figures_of_jobs_and_suites() -> None:
    done = firing(Result.ALERT)
    suite = SuiteFigures("demo", 10, 8, {"gold.tests_failed": 2}, {"gold.failed": 2}, 1_772_000_000.0)
    lines = page(suite, JobFigures(job(), True, done, done, {"alert": 3, "ok": 4}, 1_772_000_000.0), slots=4)
    for line in (
        'assay_job_running{job="nightly",kind="gold"} 1',
        'assay_job_last_success_timestamp_seconds{job="nightly",kind="gold"} 1772350202.5',
        'assay_job_last_success_duration_seconds{job="nightly",kind="gold"} 1200.5',
        'assay_job_lateness_seconds{job="nightly",kind="gold"} 602.0',
        'assay_job_firings_total{job="nightly",kind="gold",result="alert"} 3',
        'assay_suite_achievable{suite="demo"} 8',
        'assay_suite_unavailable{suite="demo",cause="gold.tests_failed"} 2',
        'assay_suite_alerts{suite="demo",alert="gold.failed"} 2',
        "assay_trial_slots 4",
        "assay_trial_slots_taken 1",
    ):
        assert line in lines


def test_what_is_unknown_has_no_sample() -> None:
    lines = page(SuiteFigures("demo", None, None, {}, {}, None), JobFigures(job(), False, None, None, {}, 0.0))
    names = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    assert not names & {
        "assay_job_last_success_timestamp_seconds",
        "assay_job_lateness_seconds",
        "assay_suite_achievable",
        "assay_trial_slots",
    }


def test_names_are_escaped() -> None:
    lines = page(SuiteFigures('a "strange"\\suite\n', 1, 1, {}, {}, None))
    assert 'assay_suite_tasks{suite="a \\"strange\\"\\\\suite\\n"} 1' in lines
