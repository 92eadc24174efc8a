"""What the upkeep of a bank finds: the record, and the record as text."""

from __future__ import annotations

from harness.records.base import Record
from harness.report.words import one_line


class FindingLine(Record):
    """One finding; `subject` is an item or "", `severity` notice, warning or alarm, `since` the run it shows since."""

    kind: str
    severity: str
    subject: str
    numbers: dict[str, float]
    sentence: str
    remedy: str
    since: str | None = None


class DriftReport(Record):
    """Findings over `runs` runs of `items` items of a bank; of the items named at most the share `alpha` is expected to
    be named in error.
    """

    bank: str
    runs: int
    items: int
    alpha: float
    findings: tuple[FindingLine, ...]
    notes: tuple[str, ...]

    @property
    def alarming(self) -> bool:
        """Whether estimates should not be relied on before something is done."""
        return any(finding.severity == "alarm" for finding in self.findings)


def drift_text(report: DriftReport) -> str:
    """One line per finding, what to do once for each kind."""
    lines = []
    for finding in report.findings:
        since = "" if finding.since is None else f" ({one_line(finding.since)})"
        lines.append(f"{finding.severity:8} {one_line(finding.sentence)}{since}")
    if not lines:
        lines.append(f"no item of {report.items} has drifted over {report.runs} runs")
    lines += [f"to do    {remedy}" for remedy in dict.fromkeys(finding.remedy for finding in report.findings)]
    return "\n".join((*lines, *(f"note     {one_line(note)}" for note in report.notes)))
