"""Carries a domain of tau2-bench's own code to Assay: `python carry_tau2.py DOMAIN`, with the tau2 that python has.

Requests and answers are lines of JSON (docs/environments.md, "A carrier: any program"). Everything that a tool does,
says or refuses is tau2's; only who may call which side's tools is asked here first, so that a missing tool is told
apart from one that fails.
"""

import copy
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import sys

answers, sys.stdout = sys.stdout, sys.stderr  # what tau2 prints must not get among the answers

from tau2.data_model.message import ToolCall  # noqa: E402  after the output is out of its reach
from tau2.data_model.tasks import EnvFunctionCall, InitializationData  # noqa: E402
from tau2.environment import toolkit  # noqa: E402

DOMAIN = sys.argv[1]
SIDES = {"agent": "assistant", "user": "user"}  # Assay's words for the sides, and tau2's
FUNCTIONS = ".function"  # a side's functions that are no tools: what sets a task up and checks its end
MUTATES = "__mutates_state__"
build = importlib.import_module(f"tau2.domains.{DOMAIN}.environment").get_environment
pristine, sessions = {}, {}


def kits(environment):
    """The tool kits by side."""
    found = {"agent": environment.tools, "user": environment.user_tools}
    return {side: kit for side, kit in found.items() if kit is not None}


def tools_of(side, kit):
    """A side's tools and, apart from them, its other public functions."""
    tools = kit.get_tools()
    for name, tool in tools.items():
        kind = kit.tool_type(name) if hasattr(kit, "tool_type") else None
        writes = getattr(getattr(kit, name, None), MUTATES, str(getattr(kind, "value", kind)) == "write")
        schema = tool.openai_schema["function"]
        about = {"description": schema["description"], "parameters": schema["parameters"]}
        yield {"name": name, "namespace": side, "writes": bool(writes), **about}
    known = {*tools, *dir(toolkit.ToolKitBase)}
    for name, _ in inspect.getmembers(type(kit), inspect.isfunction):
        if not name.startswith("_") and name not in known:
            yield {"name": name, "namespace": side + FUNCTIONS, "writes": True}


def code():
    """A digest of every source file of tau2 that was loaded, and the version of its distribution."""
    files = sorted(str(module.__file__) for name, module in [*sys.modules.items()] if name.startswith("tau2."))
    made = hashlib.sha256()
    for file in files:
        if file.endswith(".py"):
            with open(file, "rb") as source:
                made.update(source.read())
    owner = next(iter(importlib.metadata.packages_distributions().get("tau2", [])), "")  # none: a bare checkout
    version = f"{owner} {importlib.metadata.version(owner)}, " if owner else ""
    return f"{version}sha256:{made.hexdigest()}"


def capabilities():
    found = kits(build())
    spaces = [space for side in found for space in (side, side + FUNCTIONS)]
    modes = {"normal": {**{side: [side] for side in found}, "reference": spaces}}
    if "user" in found and "solo_mode" in inspect.signature(build).parameters:
        modes["solo"] = {"agent": list(found), "reference": spaces}
    return {
        "environment": f"{DOMAIN}@tau2",
        "code": code(),
        "modes": modes,
        "tools": [tool for side, kit in found.items() for tool in tools_of(side, kit)],
        "digest": "tau2's own hashes, of agent and user",
    }


def opened(ask):
    mode, initial = ask["mode"], ask.get("initial") or {}
    if mode not in pristine:  # reading the database takes a hundred times as long as copying it
        pristine[mode] = build(**({"solo_mode": True} if mode == "solo" else {}))
    environment = copy.deepcopy(pristine[mode])
    data = initial.get("initialization_data")
    actions = [EnvFunctionCall(**action) for action in initial.get("initialization_actions") or ()]
    environment.set_state(InitializationData(**data) if data else None, actions, [])
    sessions[len(sessions)] = environment, mode
    return {"session": len(sessions) - 1}


def call(ask):
    environment, mode = sessions[ask["session"]]
    side, _, rest = ask["namespace"].partition(".")
    kit, name, arguments = kits(environment).get(side), ask["name"], ask["arguments"]
    callers = {"reference"} if rest else {"reference", "agent" if mode == "solo" else side}
    if ask["actor"] not in callers:  # tau2 is not asked: it knows callers by their side, and would carry it out
        return {"content": f"Error: Tool '{name}' not found.", "error": True, "missing": True}
    if rest:  # a check, or a step of the set-up
        made = EnvFunctionCall(env_type=SIDES[side], func_name=name, arguments=arguments)
        return {"content": json.dumps(environment.run_env_function_call(made), default=str)}
    missing = kit is None or not kit.has_tool(name)
    requestor = "assistant" if mode == "solo" else SIDES[side]
    said = environment.get_response(ToolCall(id="", name=name, arguments=arguments, requestor=requestor))
    return {"content": said.content, "error": said.error, "missing": missing}


def digest(ask):
    environment, _ = sessions[ask["session"]]
    return {"digest": f"{environment.get_db_hash()} {environment.get_user_db_hash()}"}


def close(ask):
    sessions[ask["session"]] = None
    return {}


do = {
    "hello": lambda ask: {"protocol": 1, "sessions": "many", "capabilities": capabilities()},
    "open": opened,
    "call": call,
    "digest": digest,
    "close": close,
}
for line in sys.stdin:
    ask = json.loads(line)
    try:
        said = {"ok": do[ask["do"]](ask)}
    except Exception as error:  # noqa: BLE001  the other end has to be told, whatever it is
        said = {"fault": {"message": repr(error)}}
    answers.write(json.dumps({"id": ask["id"], **said}) + "\n")
    answers.flush()
