"""What a valid Harbor task may ask for that Assay cannot give. Such a task is kept, named and never run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.formats.schema import Artifact, Machine, PhaseNetwork, TaskToml
from harness.records.vocabulary import GradingEnvironment


def unsupported_features(settings: TaskToml, paths: Sequence[str]) -> tuple[str, ...]:
    """The features a task needs and Assay lacks, sorted; empty for a task that can run."""
    return tuple(sorted({*_of_settings(settings), *_of_files(settings, paths)}))


def _of_settings(settings: TaskToml) -> Iterable[str]:
    machine, verifier = settings.environment, settings.verifier
    if settings.steps:
        yield "steps (several instructions in one container)"
    yield from _of_machine(machine)
    yield from _of_network(settings)
    if verifier.environment is not None:
        yield "verifier.environment (a verifier image of its own)"
    if verifier.collect:
        yield "verifier.collect (commands before artifacts are taken)"
    for entry in settings.artifacts:
        if isinstance(entry, Artifact) and entry.exclude:
            yield "artifacts.exclude (patterns left out of an artifact)"
        if isinstance(entry, Artifact) and entry.service not in (None, "main"):
            yield "artifacts.service (compose services)"


def _of_machine(machine: Machine) -> Iterable[str]:
    if machine.os.lower() != "linux":
        yield f"environment.os = {machine.os} (Linux containers only)"
    if machine.gpus:
        yield "environment.gpus (graphics processors)"
    if machine.tpu is not None:
        yield "environment.tpu (tensor processors)"
    if machine.mcp_servers:
        yield "environment.mcp_servers (tool servers)"
    if machine.skills_dir is not None:
        yield "environment.skills_dir (skills for the agent)"
    if machine.healthcheck is not None:
        yield "environment.healthcheck (waiting until the environment is ready)"


def _of_network(settings: TaskToml) -> Iterable[str]:
    phases: tuple[PhaseNetwork, ...] = (settings.environment, settings.agent, settings.verifier)
    if any(phase.network_mode == "allowlist" for phase in phases):
        yield "network_mode = allowlist (some hosts only)"
    base = settings.environment.network_mode or (
        "no-network" if settings.environment.allow_internet is False else "public"
    )
    if (settings.agent.network_mode or base) != (settings.verifier.network_mode or base):
        yield "network_mode differs between agent and verifier (one network per trial)"


def _of_files(settings: TaskToml, paths: Sequence[str]) -> Iterable[str]:
    if "environment/docker-compose.yaml" in paths:
        yield "environment/docker-compose.yaml (several containers)"
    if ".harborignore" in paths:
        yield ".harborignore (files left out by pattern)"
    separate = settings.grading_environment is GradingEnvironment.FRESH
    if separate and {"tests/Dockerfile", "tests/docker-compose.yaml"} & set(paths):
        yield "tests/Dockerfile (a verifier image of its own)"
