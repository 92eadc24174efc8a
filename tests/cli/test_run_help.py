"""The help of `assay run`: what holds when an option is not given, and how to call a service of one's own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from harness.adaptive.errors import EngineError
from harness.adaptive.policies.catalogue import POLICIES, WITH_TRAITS, policy_named
from harness.api.request import AdaptiveRequest, RunRequest
from harness.cli.run import app

HELP = " ".join(CliRunner().invoke(app, ["--help"]).output.split())


def entry(option: str) -> str:
    """What the help says of one option."""
    after = HELP.partition(f" --{option} ")[2]
    assert after, option
    return after.partition(" --")[0]


def test_every_option_with_a_default_shows_it() -> None:
    fields = {**AdaptiveRequest.model_fields, **RunRequest.model_fields}
    names = {"solver", "api_key_env", "concurrency", "repeats", "stop", "policy", "retries", "seed", "store"} | {
        "keep_mb"
    }
    for name in names:
        assert f"[default: {fields[name].default}]" in entry(name.replace("_", "-")), name
    for option in ("max-seconds", "max-tokens", "max-steps", "max-cost"):
        assert "[default: each task's own]" in entry(option)
    assert "[default: $OPENAI_BASE_URL, or https://api.openai.com/v1]" in HELP
    # What may be left out and has a value all the same: nothing beside these.
    ours = {name for name, field in fields.items() if isinstance(field.default, int | str | float)}
    switches = {"stream", "allow_unknown_price", "preflight"}
    assert ours - switches == names


def test_the_policies_of_the_help_are_those_that_there_are() -> None:
    with pytest.raises(EngineError) as refused:
        policy_named("nope")
    for name in (*(policy.name for policy in POLICIES), *WITH_TRAITS, "NAME:BASE"):
        assert name in entry("policy"), name
        assert name in refused.value.remedy, name


def test_calling_a_service_of_ones_own_shows_what_to_do_about_its_price() -> None:
    examples = HELP.partition("Examples:")[2].split("assay run")
    own = [example for example in examples if "--base-url" in example]
    assert len(own) == 2
    for example in own:
        assert "--prices" in example or "--allow-unknown-price" in example
