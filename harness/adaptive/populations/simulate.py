"""A population of simulated agents with known abilities, and their outcomes, drawn so that they never depend
on the order of asking.

    P(pass) = σ(α·θ − β)

Axis 1 is a general ability on which every item loads with α₁ > 0; each further axis is a specific ability on
which about 1 item in d−1 loads. An agent's and an item's numbers are functions of the seed and its own name
alone (`keys`): adding an item to a suite, or asking for it first, changes nothing about the others. θ ~ N(0,
I); along the general axis the draws are stratified over the agents of one population, so that even a small
one spreads (pass rates from about 15 % to about 90 %).

This is an instrument for tests, demonstrations and benchmarks. It says nothing about any real agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray, frozen, normal_quantile, sigmoid
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms
from harness.adaptive.responses import Responses

GENERAL_LOADING_MEDIAN = 1.3
GENERAL_LOADING_LOG_SD = 0.3
SPECIFIC_LOADING_MEAN = 0.8
SPECIFIC_LOADING_SD = 0.3
DIFFICULTY_SD = 1.4


@dataclass(frozen=True, eq=False)
class Population:
    """`theta` (A, d), `alpha` (N, d), `beta` (N,) for A named agents and N named items.

    Build one with `simulate_population`. Agents and items are addressed by index; `agent_ids.index(name)`
    finds one.
    """

    seed: int
    agent_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    theta: FloatArray
    alpha: FloatArray
    beta: FloatArray

    def probability(self, agent: int) -> FloatArray:
        """P(pass) of one agent on every item, (N,)."""
        return sigmoid(self.alpha @ self.theta[agent] - self.beta)

    def draw(self, agent: int, attempt: int = 0) -> IntArray:
        """Outcomes 0 or 1 of one agent on every item, (N,); another `attempt` is an independent draw."""
        keys = mix(seeded_keys(self.seed, f"attempt {attempt}", [self.agent_ids[agent]]), name_keys(self.item_ids))
        return (uniforms(keys) < self.probability(agent)).astype(np.int64)

    def draw_one(self, agent: int, item: int, attempt: int = 0) -> bool:
        """The outcome of one agent on one item: the same as `draw(agent, attempt)[item]`."""
        key = mix(
            seeded_keys(self.seed, f"attempt {attempt}", [self.agent_ids[agent]]),
            name_keys([self.item_ids[item]]),
        )
        logit = self.alpha[item] @ self.theta[agent] - self.beta[item]
        return bool(uniforms(key)[0] < sigmoid(np.array([logit]))[0])

    def responses(self, agents: Sequence[int] | None = None, missing: float = 0.0, attempt: int = 0) -> Responses:
        """One run per agent as a history; each cell is missing with probability `missing`, independently of
        all else.
        """
        chosen = range(len(self.agent_ids)) if agents is None else agents
        names = tuple(self.agent_ids[agent] for agent in chosen)
        outcomes = np.array([self.draw(agent, attempt) for agent in chosen], dtype=np.float64)
        outcomes = outcomes.reshape(len(names), len(self.item_ids))
        item_keys = name_keys(self.item_ids)[None, :]
        lost = uniforms(mix(seeded_keys(self.seed, f"missing {attempt}", names)[:, None], item_keys)) < missing
        trials = np.where(lost, 0.0, 1.0)
        return Responses(names, self.item_ids, outcomes * trials, trials)


def simulate_population(
    seed: int, n_agents: int, item_ids: Sequence[str], d: int = 3, prefix: str = "agent"
) -> Population:
    """A population of `n_agents` agents, named `prefix-0` and on, for these items; `d` ≥ 1 abilities.

    Populations of one seed and d share their item parameters whatever `n_agents` and `prefix` are, so a
    history and a new agent can be drawn apart.

    Raises
    ------
    AdaptiveError
        If there is no agent, no item or no ability.
    """
    if n_agents < 1 or d < 1 or not item_ids:
        raise AdaptiveError(
            f"{n_agents} agents, {len(item_ids)} items, d = {d}",
            place="simulate_population",
            remedy="Each must be at least 1",
        )
    agent_ids = tuple(f"{prefix}-{index}" for index in range(n_agents))
    theta = np.column_stack([_normals(seed, f"ability {axis}", agent_ids) for axis in range(d)])
    order = np.argsort(theta[:, 0], kind="stable")
    jitter = uniforms(seeded_keys(seed, "stratum", agent_ids))
    theta[order, 0] = normal_quantile((np.arange(n_agents) + jitter[order]) / n_agents)
    alpha = np.zeros((len(item_ids), d))
    alpha[:, 0] = GENERAL_LOADING_MEDIAN * np.exp(GENERAL_LOADING_LOG_SD * _normals(seed, "loading", item_ids))
    if d > 1:
        pick = uniforms(seeded_keys(seed, "axis", item_ids))
        axis = 1 + np.floor(pick * (d - 1)).astype(np.int64)
        specific = SPECIFIC_LOADING_MEAN + SPECIFIC_LOADING_SD * _normals(seed, "specific", item_ids)
        alpha[np.arange(len(item_ids)), axis] = specific
    beta = DIFFICULTY_SD * _normals(seed, "difficulty", item_ids)
    return Population(seed, agent_ids, tuple(item_ids), frozen(theta), frozen(alpha), frozen(beta))


def _normals(seed: int, purpose: str, names: Sequence[str]) -> FloatArray:
    return np.asarray(normal_quantile(uniforms(seeded_keys(seed, purpose, names))), dtype=np.float64)
