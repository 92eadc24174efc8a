"""Whether a record can have been made in a mode: which sides there were, and who called whose tools. Pure.

Words of importers: `normal` and `dual_control` (there is a user; in the second it calls tools of its own), `solo`
(there is none, and the agent has all tools), `full_duplex` (both speak at once).
"""

from __future__ import annotations

from harness.records.environment import Capabilities
from harness.records.errors import ConfigError
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Actor
from harness.replay.order import of_interaction

NORMAL, DUAL, SOLO = "normal", "dual_control", "solo"
SPEECH = frozenset({"respond"})  # in tau-bench, what is said is an action too
_AGENT, _USER = Actor.AGENT.value, Actor.USER.value


def mode_of(recorded: RecordedEpisode, capabilities: Capabilities) -> str:
    """The environment's mode in which an episode was recorded; of an episode that does not say (one in which nothing
    was done), the only one that there is. Raises ConfigError when it has none like it."""
    modes = capabilities.modes
    if recorded.mode is None and len(modes) == 1:
        return next(iter(modes))
    for word in (recorded.mode, NORMAL if recorded.mode == DUAL else None):
        if word in modes:
            return str(word)
    raise ConfigError(
        f"episode {recorded.id} was recorded in mode {recorded.mode or 'unknown'!r}, which is none of"
        f" {capabilities.environment}'s",
        place="--mode",
        remedy=f"name one of {', '.join(modes)}",
    )


def contradiction(episode: RecordedEpisode, capabilities: Capabilities, mode: str) -> str:
    """Why the episode was not recorded in that mode; empty when nothing says so."""
    alone = _is_solo(capabilities, mode)
    user_calls = bool(capabilities.modes[mode].get(_USER))
    recorded = episode.mode
    if recorded == SOLO and not alone:
        return f"it was recorded in solo mode, in which the agent has all tools; {mode} has a user"
    if recorded in (NORMAL, DUAL) and alone:
        return f"it was recorded with a user ({recorded}); in {mode} there is none"
    if recorded == DUAL and not user_calls:
        return f"its user called tools; in {mode} the user has none"
    if recorded not in (None, NORMAL, DUAL, SOLO, mode):
        return f"it was recorded in mode {recorded}, not in {mode}"
    return _by_steps(episode, alone=alone, user_calls=user_calls, mode=mode)


def lacking(episode: RecordedEpisode, capabilities: Capabilities, mode: str) -> str:
    """The tool that the episode's task needs and nobody has in that mode; empty when there is none."""
    reachable = {tool.name for actor in (Actor.AGENT, Actor.USER) for tool in capabilities.callable(mode, actor)}
    for name in needed(episode):
        if name not in reachable:
            side = next((tool.namespace for tool in capabilities.tools if tool.name == name), None)
            where = f"it is on the {side}'s side, out of reach in {mode}" if side else "the environment has none"
            return f"the task needs the tool {name}: {where}"
    return ""


def needed(episode: RecordedEpisode) -> tuple[str, ...]:
    """Names of the tools in the task's reference actions."""
    stated = [step.payload.get("gen_ai.tool.name") for step in episode.steps if step.kind == "reference.action"]
    stated += [action.name for action in getattr(episode.definition, "actions", ())]
    return tuple(dict.fromkeys(str(name) for name in stated if name not in SPEECH))


def _is_solo(capabilities: Capabilities, mode: str) -> bool:
    """No user: by the mode's name, or because the agent has the user's tools and the user has none."""
    reach = capabilities.modes[mode]
    return mode == SOLO or (_USER in reach.get(_AGENT, ()) and not reach.get(_USER))


def _by_steps(episode: RecordedEpisode, *, alone: bool, user_calls: bool, mode: str) -> str:
    """What the record's own steps say against the mode."""
    for index, step in enumerate(episode.steps):
        if step.actor is not Actor.USER or not of_interaction(step):
            continue
        if alone:
            return f"step {index} is a user's; in {mode} there is none"
        if step.kind == "tool.call" and not user_calls:
            return f"step {index} is a tool call of the user's; in {mode} the user has no tools"
    return ""
