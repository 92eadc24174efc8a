"""assay suite list | show | lint | lock."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.api.environments import environment_locks
from harness.api.suite_lint import lint_suite
from harness.api.suites import load_suite
from harness.bootstrap.engine import ensure_engine
from harness.bootstrap.images import resolve_images
from harness.bootstrap.locate import connect_engine
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json, say
from harness.formats.findings import Level, lines_of
from harness.formats.lock import LOCK_FILE, images_needed, make_lock, write_lock
from harness.formats.suite import find_suite
from harness.formats.suite import load_suite as load_from_disk
from harness.records.suite import Suite
from harness.records.task import Task

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, show, lint and lock suites of tasks.", add_completion=False
)
PathOrName = Annotated[str, typer.Argument(help="A suite, task or family folder, or a bundled suite (terminal).")]
Globs = Annotated[list[str] | None, typer.Option("--task", help="Only tasks whose id matches this glob; repeatable.")]


@app.command("list", epilog="Example: assay suite list terminal --task 'git-*' --json")
def list_tasks(path: PathOrName, task: Globs = None, as_json: AsJson = False) -> None:
    """List a suite's tasks with family, version and image."""
    suite = load_suite(path, task or ())
    if as_json:
        print_json(_described(suite))
        return
    for one in suite.tasks:
        print(f"{one.id}  {one.difficulty or '-':7} {one.version[7:19]}  {one.image.digest or one.image.reference}")
    state = "locked" if suite.locked else f"not locked: run `assay suite lock {path}`"
    say(f"{len(suite.tasks)} tasks in {len({one.family for one in suite.tasks})} families; {state}")


@app.command(epilog="Example: assay suite show terminal --task csv-join/01")
def show(path: PathOrName, task: Globs = None, as_json: AsJson = False) -> None:
    """Show tasks whole: instruction, budget, limits, grading, mutations."""
    suite = load_suite(path, task or ())
    if as_json:
        print_json({"tasks": [_whole(one) for one in suite.tasks]})
        return
    for one in suite.tasks:
        print(_page(one))


@app.command(epilog="Example: assay suite lint path/to/suite")
def lint(path: PathOrName, as_json: AsJson = False) -> None:
    """Say everything that is wrong, doubtful or exposed about a suite, at once. Exits 2 on an error."""
    findings = lint_suite(path)
    if as_json:
        print_json({"findings": [asdict(found) for found in findings]})
    else:
        for line in lines_of(findings):
            print(line)
        say(f"{len(findings)} finding(s), {sum(found.level is Level.ERROR for found in findings)} error(s)")
    raise typer.Exit(Exit.USAGE if any(found.level is Level.ERROR for found in findings) else Exit.OK)


@app.command(epilog="Example: assay suite lock path/to/suite --out suite.lock")
def lock(
    path: PathOrName,
    out: Annotated[Path | None, typer.Option(help="Where to write it; the suite's own folder by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Pin images by digest, files by sha256, graders by version; builds what has only a Dockerfile."""
    folder = find_suite(path)
    suite = load_from_disk(path, ignore_lock=True)
    images = environment_locks(suite)
    needed = [need for need in images_needed(suite) if need.reference not in images]
    if needed:
        engine = ensure_engine(os.environ, say)
        client = connect_engine(engine.address, os.environ)
        try:
            images |= resolve_images(client, needed, say)
        finally:
            client.close()
    made = make_lock(suite, images)
    target = out or folder / LOCK_FILE
    write_lock(target, made)
    if as_json:
        print_json({"lock": str(target), "suite": suite.name, "tasks": len(made.tasks), "images": len(made.images)})
    else:
        say(f"{target}: {len(made.tasks)} tasks, {len(made.images)} image(s) pinned")


def _described(suite: Suite) -> dict[str, Any]:
    return {
        "suite": suite.name,
        "version": suite.version,
        "locked": suite.locked,
        "tasks": [
            {
                "id": one.id,
                "family": one.family,
                "version": one.version,
                "image": one.image.locator,
                "image_reference": one.image.reference,
                "difficulty": one.difficulty,
                "requires_write": one.requires_write,
                "mutations": [mutation.name for mutation in one.mutations],
                "grading": one.grading.environment.value,
                "unsupported": list(one.unsupported),
                "source": one.source,
            }
            for one in suite.tasks
        ],
    }


def _whole(task: Task) -> dict[str, Any]:
    plain = task.plain()
    plain["version"] = task.version
    trees = (("environment", "files"), ("environment", "setup_files"), ("solution", "files"), ("grading", "tests"))
    for part, key in trees:
        plain[part][key] = getattr(getattr(task, part), key).digests()
    return plain


def _page(task: Task) -> str:
    budget = ", ".join(f"{key} {value}" for key, value in task.budget if value is not None) or "none"
    mutations = ", ".join(mutation.name for mutation in task.mutations) or "none"
    limits = f"{task.limits.cpus:g} cpu, {task.limits.memory_mb} MB, network {task.limits.network.value}"
    rows = {
        "version": task.version,
        "image": task.image.locator or f"{task.image.reference} (not locked)",
        "budget": budget,
        "limits": limits,
        "grading": f"{task.grading.grader} in {task.grading.environment.value} environment",
        "mutations": mutations,
        "source": task.source,
    }
    if task.conversation is not None:
        talk = task.conversation
        rows |= {
            "limits": f"conversation in {talk.environment}, mode {talk.mode}",
            "grading": f"{task.grading.grader}: {len(talk.actions)} reference actions, {len(talk.outputs)} outputs",
            "user": talk.user.opening if talk.user is not None else "none",
        }
    facts = "\n".join(f"{key:10} {value}" for key, value in rows.items())
    return f"── {task.id}\n{facts}\n\n{task.instruction.rstrip()}\n"
