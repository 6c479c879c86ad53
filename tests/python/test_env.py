"""The Gymnasium and PettingZoo environments, by the checks of their own projects and against C."""

import pathlib
import re
import subprocess
import warnings

import faasrl_env
import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
ID = "faasrl/FaasScaling-v0"
BUSY = "poisson:rate=100,span=60,demand=100,p99=100"


# --- the checks of Gymnasium and PettingZoo ---
@pytest.mark.parametrize("action_form", [None, "multidiscrete", "discrete"])
@pytest.mark.parametrize("formulation", faasrl_env.FORMULATIONS)
def test_gymnasium_check_env(formulation, action_form):
    env = gymnasium.make(ID, formulation=formulation, action_form=action_form)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("formulation", faasrl_env.FORMULATIONS)
def test_pettingzoo_parallel_api(formulation):
    parallel_api_test(faasrl_env.parallel_env(formulation=formulation, functions=3), 300)


@pytest.mark.parametrize("churn", [0.3, 1])
def test_pettingzoo_with_functions_that_join_and_leave(churn):
    env = faasrl_env.parallel_env(functions=6, churn=churn, episode_steps=40)
    parallel_api_test(env, 200)


def test_pettingzoo_seeds():
    parallel_seed_test(lambda: faasrl_env.parallel_env(functions=3), 50)


# --- the same numbers as in C ---
def walk():
    sim = faasrl_env.Simulation("simppo", clusters=2, functions=3, churn=0.5, episode_steps=20)
    sim.reset(42)
    for step in range(30):
        flat = sim.actions.reshape(-1)
        flat[:] = (step * 7 + numpy.arange(flat.size) * 5) % 3
        sim.step()
        yield sim.rewards.reshape(-1, 1).copy(), sim.observations.reshape(6, -1).copy()


def test_python_and_c_walk_alike():
    told = subprocess.run([ROOT / "build" / "sim-walk"], capture_output=True, text=True, check=True)
    in_c = [[float.fromhex(x) for x in line.split()] for line in told.stdout.splitlines()]
    in_python = numpy.concatenate([numpy.hstack(pair) for pair in walk()])
    numpy.testing.assert_array_equal(in_python, numpy.array(in_c, "f4"))


# --- MP3 ---
def test_mp3_begins_with_the_example_of_its_document():
    env = gymnasium.make(ID, formulation="mp3", trace=BUSY)
    env.reset(seed=1)
    state, _, _, _, info = env.step({"vertical": 0, "horizontal": 0})
    # 2 · 512 / (512 + 1536) = 0.5 CPU
    assert info["cpu_used_cores"] == pytest.approx(0.5)
    assert info["cpu"] == 512
    assert state[0] == pytest.approx(1)


def test_mp3_actions_are_those_of_its_document():
    env = gymnasium.make(ID, formulation="mp3")
    env.reset(seed=1)
    _, _, _, _, info = env.step({"vertical": 128, "horizontal": 0})
    assert (info["cpu"], info["replicas"]) == (640, 1)
    _, _, _, _, info = env.step({"vertical": 0, "horizontal": 1})
    assert (info["cpu"], info["replicas"]) == (640, 2)
    _, _, _, _, info = env.step({"vertical": -128, "horizontal": -1})
    assert (info["cpu"], info["replicas"], info["oscillating"]) == (512, 1, 1)
    with pytest.raises(ValueError, match="action"):
        env.unwrapped.step({"vertical": 256, "horizontal": 0})


def test_neighbours_hold_still():
    env = gymnasium.make(ID, formulation="mp3", functions=3)
    env.reset(seed=1)
    for _ in range(4):
        env.step({"vertical": 128, "horizontal": 1})
    sim = env.unwrapped.simulation
    assert [sim.figures_of(0, i)["replicas"] for i in range(3)] == [5, 1, 1]


# --- episodes ---
def test_an_episode_ends_by_truncation():
    env = gymnasium.make(ID, episode_steps=5)
    env.reset(seed=3)
    ends = [env.step(env.action_space.sample())[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_options_hold_for_one_episode():
    env = gymnasium.make(ID, trace="poisson:rate=1,demand=5,p99=5")
    _, info = env.reset(seed=1)
    assert info["goal_ms"] == pytest.approx(10)
    _, info = env.reset(seed=1, options={"trace": "poisson:rate=1,demand=7,p99=7"})
    assert info["goal_ms"] == pytest.approx(14)
    _, info = env.reset(seed=1)
    assert info["goal_ms"] == pytest.approx(10)
    with pytest.raises(ValueError, match="cannot change what is observed"):
        env.reset(options={"state": "mp3"})


def test_seeds_decide():
    env = gymnasium.make(ID)
    first, same, other = (env.reset(seed=s)[0] for s in (1, 1, 2))
    numpy.testing.assert_array_equal(first, same)
    assert not numpy.array_equal(first, other)
    assert not numpy.array_equal(env.reset()[0], env.reset()[0])


# --- many clusters ---
def test_vector_env_is_one_block():
    envs = gymnasium.make_vec(
        ID, num_envs=16, vectorization_mode="vector_entry_point", copy=False, episode_steps=6
    )
    seen, info = envs.reset(seed=1)
    assert seen in envs.observation_space
    assert numpy.shares_memory(seen, envs.unwrapped.simulation.observations)
    assert info["action_mask"].shape == (16, 10)
    for step in range(1, 9):
        after, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert after is not None and rewards.shape == (16,)
        assert truncated.all() == (step == 6)
        assert (rewards == 0).all() == (step == 7)  # where the next episode began
        assert not terminated.any()


def test_a_vector_env_walks_like_its_first_environment():
    one = gymnasium.make(ID, formulation="mappo", action_form="discrete")
    many = faasrl_env.FaasScalingVectorEnv(3, formulation="mappo", action_form="discrete")
    seen, _ = one.reset(seed=9)
    all_seen, _ = many.reset(seed=9)
    numpy.testing.assert_array_equal(seen, all_seen[0])
    for action in (0, 13, 26, 5, 13):
        seen, reward, *_ = one.step(action)
        all_seen, rewards, *_ = many.step([action, 13, 13])
        numpy.testing.assert_array_equal(seen, all_seen[0])
        assert reward == rewards[0]


def test_views_outlive_the_simulation():
    observations = faasrl_env.Simulation(clusters=3).observations
    assert numpy.isfinite(observations).all()


def test_threads_change_nothing():
    sims = [faasrl_env.Simulation(clusters=5, functions=2, threads=n) for n in (1, 3)]
    for sim in sims:
        sim.reset(4)
        for _ in range(5):
            sim.step()
    numpy.testing.assert_array_equal(sims[0].observations, sims[1].observations)


# --- what people see ---
def test_wrong_settings_are_told():
    with pytest.raises(ValueError, match='no setting "colour"'):
        gymnasium.make(ID, colour="red")
    with pytest.raises(ValueError, match="functions is \"0\""):
        faasrl_env.parallel_env(functions=0)
    with pytest.raises(ValueError, match="trace"):
        gymnasium.make(ID, trace="nothing:rate=1")
    with pytest.raises(ValueError, match="action_form"):
        gymnasium.make(ID, action_form="dict")


def test_render(capsys):
    env = gymnasium.make(ID, render_mode="ansi", functions=2)
    env.reset(seed=1)
    assert len(env.render().splitlines()) == 3
    env = faasrl_env.parallel_env(render_mode="human", functions=4)
    env.reset(seed=1)
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_masks_say_what_is_legal():
    env = gymnasium.make(ID, min_replicas=1, initial_replicas=1, max_cpu=1000)
    _, info = env.reset(seed=1)
    assert info["action_mask"]["replicas"].tolist() == [0, 0, 1, 1, 1]
    assert info["action_mask"]["cpu"].tolist() == [1, 1, 1, 0, 0]


# --- what is written about it ---
def documented(name, language):
    text = (ROOT / name).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["docs/environment.md", "python/README.md"])
def test_examples_run(name, capsys):
    blocks = documented(name, "python")
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {})


def test_example_in_c_runs(tmp_path):
    library = next(pathlib.Path(faasrl_env.__file__).parent.glob("_sim*.so"))
    (tmp_path / "example.c").write_text(documented("docs/environment.md", "c")[0])
    flags = ["-std=gnu17", "-Wall", "-Werror", "-D_GNU_SOURCE", "-DFAASRL_NO_JSON", f"-I{ROOT}/pkg"]
    command = ["cc", *flags, "-o", "example", "example.c", library, f"-Wl,-rpath,{library.parent}"]
    subprocess.run(command, cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "example"], capture_output=True, text=True, check=True)
    assert len(told.stdout.splitlines()) == 20


def test_every_setting_is_documented():
    text = (ROOT / "docs/environment.md").read_text()
    missing = [name for name in faasrl_env.settings() if f"`{name}`" not in text]
    assert not missing


@pytest.mark.parametrize("formulation", faasrl_env.FORMULATIONS)
def test_every_field_is_documented(formulation):
    text = (ROOT / "docs/environment.md").read_text()
    sim = faasrl_env.Simulation(formulation)
    fields = sim.observation_fields + sim.global_fields + sim.dimensions
    assert not [field.name for field in fields if f"`{field.name}`" not in text]


def test_versions_agree():
    in_make = re.search(r"^VERSION \?= (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    in_python = re.search(r'^version = "(.*)"', (ROOT / "python/pyproject.toml").read_text(), re.MULTILINE)
    assert in_make[1] == in_python[1]
