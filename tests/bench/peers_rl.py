"""PPO elsewhere with the settings of bench_train_steps: 2 × 64 tanh, one environment, 200 steps, then 5 epochs of
minibatches of 5. Usage: peers_rl.py PEER. Prints JSON: our figure → its value, by CPU time of one thread.

Stable-Baselines3 learns CartPole as we do, and our own environment through its Gymnasium binding. RLtools has no options to choose from, only numbers, so that it learns its
own Pendulum; the networks and the number of their updates are the same."""
import json
import os
import sys
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
PENDULUM = """#include <rl_tools/rl/environments/pendulum/operations_generic.h>
namespace pendulum = rl_tools::rl::environments::pendulum;
template <typename T, typename TI>
using ENVIRONMENT_FACTORY = rl_tools::rl::environments::Pendulum<
    pendulum::Specification<T, TI, pendulum::DefaultParameters<T>>>;
"""


def cpu_s(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def stable_baselines(steps=2000, predictions=2000):
    import faasrl_env  # registers the environment
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    torch.set_num_threads(1)

    def model_of(name, **settings):
        return PPO("MlpPolicy", gymnasium.make(name, **settings), learning_rate=3e-4, n_steps=200, batch_size=5,
                   n_epochs=5, gamma=0.99, gae_lambda=0.95, clip_range=0.2, ent_coef=0.01, vf_coef=0.05,
                   normalize_advantage=False, policy_kwargs={"net_arch": [64, 64]}, device="cpu", seed=1)

    carts, functions = model_of("CartPole-v1"), model_of("faasrl/FaasScaling-v0", action_form="multidiscrete")
    seen = carts.env.reset()[0]
    return {"train_steps_per_s": steps / cpu_s(lambda: carts.learn(steps)),
            "train_sim_steps_per_s": steps / cpu_s(lambda: functions.learn(steps)),
            "policy_forward_us": cpu_s(lambda: [carts.predict(seen, deterministic=True)
                                                for _ in range(predictions)]) / predictions * 1e6}


def rltools(updates=250):
    with tempfile.TemporaryDirectory() as directory:
        tempfile.tempdir = directory  # where it compiles
        with open(os.path.join(directory, "environment.h"), "w", encoding="utf-8") as file:
            file.write(PENDULUM)
        from rltools import PPO
        ppo = PPO({"path": directory, "action_dim": 1, "observation_dim": 3}, enable_evaluation=False,
                  N_ENVIRONMENTS=1, ON_POLICY_RUNNER_STEPS_PER_ENV=200, BATCH_SIZE=5, N_EPOCHS=5,
                  STEP_LIMIT=updates, ACTOR_ACTIVATION_FUNCTION="TANH", CRITIC_ACTIVATION_FUNCTION="TANH",
                  OPTIMIZER_ALPHA=3e-4, NORMALIZE_ADVANTAGE=False)
        state = ppo.State(1)

        def learn():
            for _ in range(updates):
                state.step()

        return {"train_steps_per_s": 200 * updates / cpu_s(learn)}


PEERS = {"RLtools": rltools, "Stable-Baselines3": stable_baselines}
print(json.dumps(PEERS[sys.argv[1]]()))
