"""assay lint-archive."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from harness.api.archives import LintReport, lint_archive
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json
from harness.records.archive import ImportOptions

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(name="lint-archive", epilog="Example: assay lint-archive results.json --all")
def lint(
    path: Annotated[str, typer.Argument(help="A file, folder or ZIP; gzip is fine.")],
    format: Annotated[str | None, typer.Option(help="Which format it is; by default told from its content.")] = None,
    reference: Annotated[str | None, typer.Option(help="A file of tasks with their reference actions.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every finding, not three of a kind.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say where an archive contradicts itself: labels, header, duplicates, totals, rewards, usage.

    Times too. A repaired label is proposed with its evidence, and never applied. Exits 3 when there is a finding.
    """
    report = lint_archive(path, format=format, options=ImportOptions(reference=reference))
    if as_json:
        print_json(report)
    else:
        _print(report, everything)
    raise typer.Exit(Exit.ALERT if report.findings else Exit.OK)


def _print(report: LintReport, everything: bool) -> None:
    print(f"{report.path}: {report.what}; {report.episodes} episode(s)")
    if report.missing:
        print(f"not in this archive: {', '.join(report.missing)}")
    counts, shown = Counter(finding.rule for finding in report.findings), Counter[str]()
    for finding in report.findings:
        shown[finding.rule] += 1
        if shown[finding.rule] > 3 and not everything:
            continue
        print(f"{finding.rule}  {finding.place}: {finding.what}" + (f" — {finding.remedy}" if finding.remedy else ""))
        if finding.proposal:
            print(f"    proposed: {', '.join(f'{key} = {value}' for key, value in finding.proposal.items())}")
        if finding.evidence:
            print(f"    evidence: {finding.evidence}")
    if not report.findings:
        print("nothing contradicts itself")
        return
    print(f"{len(report.findings)} finding(s): {', '.join(f'{count} {rule}' for rule, count in counts.items())}")
