"""Gymnasium environments: one function is scaled, its neighbours on the cluster hold still."""

import gymnasium
import numpy
from gymnasium.vector.utils import batch_space

from faasrl_env import actions
from faasrl_env.simulation import Simulation


class FaasScalingEnv(gymnasium.Env):
    """One function on a simulated cluster.

    Parameters: ``formulation`` (default, mp3, mappo, simppo, aware) chooses state, actions and
    reward; ``action_form`` (dict, multidiscrete, discrete) how an action is given; all others are
    settings of the simulation, see ``faasrl_env.settings()``. With more than one of ``functions``
    the first is the agent's, and the others keep what they have.

    ``reset(seed=…)`` gives the same episode for the same seed. Settings in its ``options`` hold for
    this episode, as in ``options={"trace": "poisson:rate=50"}``.

    ``info`` has the figures of the last interval in plain units, for rewards of one's own, and
    ``action_mask``: the legal options of each dimension.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 4}

    def __init__(self, formulation="default", render_mode=None, action_form=None, **settings):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode {render_mode!r} is not known: must be ansi or human")
        if int(settings.get("clusters", 1)) != 1:
            raise ValueError("clusters must be 1 here: use gymnasium.make_vec for more")
        self.render_mode = render_mode
        self._formulation, self._settings = formulation, settings
        self._usual = self.simulation = Simulation(formulation, **settings)
        self._actions = actions.make(action_form, formulation, self.simulation.dimensions)
        self.action_space = self._actions.space
        self.observation_space = actions.box(self.simulation.observation_fields)

    def _episode_simulation(self, options):
        if not options:
            return self._usual
        simulation = Simulation(self._formulation, **{**self._settings, **options})
        if actions.box(simulation.observation_fields) != self.observation_space:
            raise ValueError("options of reset cannot change what is observed")
        return simulation

    def _seen(self):
        observation = self.simulation.observations[0, 0].copy()
        info = self.simulation.figures_of(0, 0)
        info["action_mask"] = self.simulation.masks_of(0, 0)
        if self.simulation.global_fields:
            info["global_state"] = self.simulation.globals[0, 0].copy()
        return observation, info

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.simulation = self._episode_simulation(options)
        self.simulation.reset(int(self.np_random.integers(2**63)) if seed is None else seed)
        if self.render_mode == "human":
            self.render()
        return self._seen()

    def step(self, action):
        simulation = self.simulation
        simulation.actions[:] = simulation.hold
        simulation.actions[0, 0] = self._actions.options(action)
        simulation.step()
        observation, info = self._seen()
        if self.render_mode == "human":
            self.render()
        return (
            observation,
            float(simulation.rewards[0, 0]),
            bool(simulation.terminated[0, 0]),
            bool(simulation.truncated[0, 0]),
            info,
        )

    def render(self):
        text = self.simulation.text_of(0)
        if self.render_mode == "ansi":
            return text
        print(text, end="")
        return None


class FaasScalingVectorEnv(gymnasium.vector.VectorEnv):
    """``num_envs`` clusters in one block of memory; as ``FaasScalingEnv`` otherwise.

    Actions are MultiDiscrete, or Discrete with ``action_form="discrete"``. With ``copy=False``
    observations and rewards are views of the simulator's memory, which the next step overwrites.
    """

    metadata = {
        "render_modes": ["ansi"],
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs=1,
        formulation="default",
        render_mode=None,
        action_form="multidiscrete",
        copy=True,
        **settings,
    ):
        if action_form == "dict":
            raise ValueError("action_form must be multidiscrete or discrete here")
        self.num_envs, self.render_mode, self._copy = num_envs, render_mode, copy
        self.simulation = Simulation(formulation, clusters=num_envs, **settings)
        self._form = actions.make(action_form, formulation, self.simulation.dimensions)
        self.single_action_space = self._form.space
        self.single_observation_space = actions.box(self.simulation.observation_fields)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _given(self, array):
        return array.copy() if self._copy else array

    def _info(self):
        return {"action_mask": self._given(self.simulation.masks[:, 0])}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if options:
            raise ValueError("options are not supported here: make another environment")
        self.simulation.reset(int(self.np_random.integers(2**63)) if seed is None else seed)
        return self._given(self.simulation.observations[:, 0]), self._info()

    def step(self, actions):
        simulation = self.simulation
        simulation.actions[:] = simulation.hold
        if isinstance(self.single_action_space, gymnasium.spaces.Discrete):
            options = numpy.unravel_index(numpy.asarray(actions), self._form.sizes)
            simulation.actions[:, 0] = numpy.stack(options, axis=-1)
        else:
            simulation.actions[:, 0] = actions
        simulation.step()
        return (
            self._given(simulation.observations[:, 0]),
            self._given(simulation.rewards[:, 0]),
            simulation.terminated[:, 0].astype(bool),
            simulation.truncated[:, 0].astype(bool),
            self._info(),
        )

    def render(self):
        return tuple(self.simulation.text_of(i) for i in range(self.num_envs))
