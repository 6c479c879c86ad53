"""Scaling serverless functions as a reinforcement learning environment.

    import gymnasium, faasrl_env
    env = gymnasium.make("faasrl/FaasScaling-v0", formulation="mp3")

What is simulated, seen, done and rewarded is told in docs/environment.md of the repository;
``faasrl_env.settings()`` lists every setting with its bounds.
"""

import gymnasium

from faasrl_env.multi import parallel_env
from faasrl_env.scaling import FaasScalingEnv, FaasScalingVectorEnv
from faasrl_env.simulation import FORMULATIONS, Simulation, settings

__all__ = [
    "FORMULATIONS",
    "FaasScalingEnv",
    "FaasScalingVectorEnv",
    "Simulation",
    "parallel_env",
    "settings",
]

gymnasium.register(
    id="faasrl/FaasScaling-v0",
    entry_point="faasrl_env.scaling:FaasScalingEnv",
    vector_entry_point="faasrl_env.scaling:FaasScalingVectorEnv",
)
