"""What is found out before a run begins: nothing is stored or spent when it cannot go well."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.adaptive.bank import UNKNOWN_ITEM, Bank
from harness.api.request import RunRequest
from harness.api.wiring import SolverPlugin, service_url
from harness.billing.genai import known_service
from harness.billing.prices import PriceTable
from harness.protocols import Given
from harness.records.errors import AssayError, ConfigError
from harness.records.suite import Suite
from harness.records.vocabulary import Network

DEFAULT_KEY = RunRequest.model_fields["api_key_env"].default

CROWD = 8  # trials per core from which a run is told of; most of a trial is waiting for a model


def check_key(request: RunRequest) -> None:
    """An API key where one was named or the provider is known to need one, and one that can be sent. Raises
    ConfigError."""
    name = request.api_key_env
    key = os.environ.get(name)
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            remedy = "set it again, without quotes and line ends"
            raise ConfigError("the API key holds blanks or characters that no key has", place=f"${name}", remedy=remedy)
        return
    provider = known_service(service_url(request))
    if provider is not None or name != DEFAULT_KEY:
        who = f"{provider} needs an API key, and" if provider is not None else "the variable of the API key,"
        remedy = f"export {name}=…, or name another variable with --api-key-env"
        raise ConfigError(f"{who} ${name} is not set", remedy=remedy)


def check_sources(request: RunRequest) -> None:
    """The files that the items of an adaptive run come from are there. Raises ConfigError."""
    asked = request.adaptive
    for key, path in (("history", asked.history), ("bank", asked.bank)) if asked is not None else ():
        if path is not None and not Path(path).is_file():
            raise ConfigError(f"{path} is not a file", place=f"adaptive.{key}", remedy=f"check --{key}")


def check_on_suite(plugin: SolverPlugin, suite: Suite) -> tuple[str, ...]:
    """Let a solver that gets the solutions look at them. Returns what it wants a reader to know; raises ConfigError."""
    _check_converses(plugin, suite)
    check: Callable[..., Any] | None = getattr(plugin.make, "check_solutions", None)
    if check is None or not plugin.spec.uses_solution:
        return ()
    given = {task.id: Given(task.solution, task.mutations) for task in suite.tasks}
    try:
        return tuple(str(note) for note in check(plugin.spec.options, given) or ())
    except AssayError:
        raise
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        message = f"solver {plugin.spec.name!r} cannot be used: {type(error).__name__}: {error}"
        raise ConfigError(message, remedy="mend its `check_solutions`") from error


def _check_converses(plugin: SolverPlugin, suite: Suite) -> None:
    talks = [task.id for task in suite.tasks if task.conversation is not None]
    if talks and not getattr(plugin.make, "converses", False):
        raise ConfigError(
            f"solver {plugin.spec.name!r} does not converse, and {len(talks)} tasks are conversations ({talks[0]}, …)",
            remedy="use agent, reference, noop or mutated, or one of your own with `converses = True`",
        )


def request_notes(request: RunRequest, plugin: SolverPlugin, suite: Suite, prices: PriceTable) -> tuple[str, ...]:
    """What is odd about a request that can be carried out all the same."""
    return (*_model_notes(request, plugin, prices), *_budget_notes(request, plugin, suite), *_load_notes(request))


def _model_notes(request: RunRequest, plugin: SolverPlugin, prices: PriceTable) -> Iterator[str]:
    if request.model is None:
        return
    if not plugin.needs_model:
        yield f"model {request.model!r} is not used: solver {plugin.label!r} does not declare `needs_model = True`"
        return
    price = prices.price(request.model)
    if price is None:
        unkept = ", and cost budgets are not kept" if request.allow_unknown_price else ""
        yield f"{prices.label} has no price for model {request.model!r}: its cost stays unknown{unkept} (--prices FILE)"
    elif price.assumed:
        said = ", ".join(price.assumed)
        yield f"the price table ({prices.label}) leaves out prices of {request.model!r}; from above, {said}"


def _budget_notes(request: RunRequest, plugin: SolverPlugin, suite: Suite) -> Iterator[str]:
    """A solver that calls models past the harness is not held by a budget of tokens or money."""
    asked = request.budget.tokens is not None or request.budget.cost_usd is not None
    reaches_out = any(task.limits.network is not Network.NONE for task in suite.tasks)
    if asked and reaches_out and not plugin.spec.metered:
        yield f"what solver {plugin.label!r} spends is not seen: token and cost budgets cannot hold it"


def _load_notes(request: RunRequest) -> Iterator[str]:
    """Tasks and graders have limits of wall time: on a machine with far too little CPU they fail what is right."""
    cores = os.cpu_count() or 1
    if request.concurrency > CROWD * cores:
        yield (
            f"{request.concurrency} trials at once on {cores} core(s): limits of wall time, the graders' too, may run"
            " out for want of CPU (--concurrency)"
        )


def adaptive_notes(request: RunRequest, bank: Bank) -> tuple[str, ...]:
    """What the bank of a run, aligned with its tasks, cannot tell about them. None where no source was named: that the
    tasks are then all alike is what was asked for."""
    asked = request.adaptive
    if asked is None or not (asked.history or asked.bank):
        return ()
    source = f"history {Path(asked.history).name}" if asked.history else f"bank {Path(asked.bank or '').name}"
    unknown = sum(why == UNKNOWN_ITEM for why in bank.provenance.held_out.values())
    notes = []
    if unknown == len(bank):
        notes.append(f"{source} shares no task with this run: all are taken to be alike, the choice is a random sample")
    elif unknown:
        notes.append(f"{source} does not know {unknown} of {len(bank)} tasks: those are taken to be typical")
    if asked.policy == "auto" and bank.backtest is None:
        notes.append(f"{source} has no back-test, so --policy auto is d_optimal: assay calibrate makes one")
    if bank.provenance.n_runs == 1:
        notes.append(f"{source} holds one run: which tasks are hard cannot be told from one")
    return tuple(notes)
