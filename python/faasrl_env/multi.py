"""The PettingZoo environment: every function of a cluster is an agent."""

import functools

import numpy
from pettingzoo import ParallelEnv

from faasrl_env import actions
from faasrl_env.simulation import Simulation


class FaasParallelEnv(ParallelEnv):
    """The functions of one simulated cluster, each scaled by its own agent, all at once.

    Parameters are those of ``FaasScalingEnv``. With ``churn`` functions join late and leave early:
    ``agents`` are those that are there, ``possible_agents`` all.

    ``infos`` have the figures of the last interval, ``action_mask`` and, in MA-PPO's formulation,
    ``global_state`` for the critic. ``state()`` is what all agents see, in a row; the place of one
    that is not there is zero.
    """

    metadata = {"name": "faasrl_scaling_v0", "render_modes": ["ansi", "human"]}

    def __init__(self, formulation="simppo", render_mode=None, action_form=None, **settings):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode {render_mode!r} is not known: must be ansi or human")
        if int(settings.get("clusters", 1)) != 1:
            raise ValueError("clusters must be 1 here: use faasrl_env.Simulation for more")
        self.render_mode = render_mode
        self.simulation = Simulation(formulation, **settings)
        self.possible_agents = [f"function_{i}" for i in range(self.simulation.functions)]
        self.agents = []
        self._formulation, self._form = formulation, action_form
        self._actions = actions.make(action_form, formulation, self.simulation.dimensions)
        self._random = numpy.random.default_rng()
        self.state_space = actions.box(self.simulation.observation_fields * len(self.possible_agents))

    @functools.lru_cache(maxsize=None)
    def observation_space(self, agent):
        return actions.box(self.simulation.observation_fields)

    @functools.lru_cache(maxsize=None)
    def action_space(self, agent):
        return actions.make(self._form, self._formulation, self.simulation.dimensions).space

    def _number(self, agent):
        return self.possible_agents.index(agent)

    def _there(self):
        return [a for i, a in enumerate(self.possible_agents) if self.simulation.present[0, i]]

    def _observations(self, agents):
        return {a: self.simulation.observations[0, self._number(a)].copy() for a in agents}

    def _infos(self, agents):
        infos = {}
        for agent in agents:
            number = self._number(agent)
            infos[agent] = self.simulation.figures_of(0, number)
            infos[agent]["action_mask"] = self.simulation.masks_of(0, number)
            if self.simulation.global_fields:
                infos[agent]["global_state"] = self.simulation.globals[0, number].copy()
        return infos

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._random = numpy.random.default_rng(seed)
        self.simulation.reset(int(self._random.integers(2**63)) if seed is None else seed)
        self.agents = self._there()
        if self.render_mode == "human":
            self.render()
        return self._observations(self.agents), self._infos(self.agents)

    def step(self, actions):
        simulation, acting = self.simulation, self.agents
        simulation.actions[:] = simulation.hold
        for agent in acting:
            simulation.actions[0, self._number(agent)] = self._actions.options(actions[agent])
        simulation.step()
        told = acting + [agent for agent in self._there() if agent not in acting]
        numbers = {agent: self._number(agent) for agent in told}
        rewards = {a: float(simulation.rewards[0, i]) for a, i in numbers.items()}
        left = {a: bool(simulation.terminated[0, i]) for a, i in numbers.items()}
        over = {a: bool(simulation.truncated[0, i]) for a, i in numbers.items()}
        self.agents = [agent for agent in told if not left[agent] and not over[agent]]
        if self.render_mode == "human":
            self.render()
        return self._observations(told), rewards, left, over, self._infos(told)

    def state(self):
        return self.simulation.observations[0].reshape(-1).copy()

    def render(self):
        text = self.simulation.text_of(0)
        if self.render_mode == "ansi":
            return text
        print(text, end="")
        return None

    def close(self):
        self.agents = []


def parallel_env(**settings):
    """A PettingZoo ``ParallelEnv`` of many functions on one cluster; see ``FaasParallelEnv``."""
    return FaasParallelEnv(**settings)
