"""Ray RLlib: masks that hold, and runs that survive, on one machine and on two nodes, made by `ray start`."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("ray")
torch = pytest.importorskip("torch")

from gymnasium.spaces import Box, Dict, Discrete  # noqa: E402

import train  # noqa: E402
from agents.rllib_ppo import Config  # noqa: E402
from kismet_env.batch import Batch  # noqa: E402
from kismet_env.bots import make  # noqa: E402
from kismet_env.evaluation import play  # noqa: E402
from kismet_env.policy_file import load_policy  # noqa: E402
from kismet_env.provenance import Provenance  # noqa: E402
from kismet_env.rllib import MaskedBatch, MaskedPPO  # noqa: E402

ROOT = Path(__file__).parent.parent
SMALL = [
    *("--num-envs", "16", "--rollout-steps", "16", "--batch-size", "64", "--epochs", "1", "--hidden-sizes", "16"),
    *("--selection-games", "8", "--selection-every", "2", "--threads", "1"),
]
ROLLOUT = 256
PATIENCE = 600  # seconds
ENVIRONMENT = os.environ | {
    "RAY_AUTH_MODE": "disabled",  # else a head asks for a token where a user has one
    "RAY_worker_niceness": "0",  # else other jobs on the machine go before the env runners
}


def command(*options: object) -> list[str]:
    return [sys.executable, "train.py", "rllib_ppo", *map(str, options)]


def trained(*options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*options), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE
    )


def curve_of(folder: Path) -> list[dict[str, str]]:
    """The rows that are whole: a run may be writing."""
    if not (folder / "curve.csv").exists():
        return []
    with (folder / "curve.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["steps_per_second"]]


def wait_for(what: Callable[[], Any], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, "the run ended before what was waited for"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def module_of(num_observed: int, num_actions: int, hidden: int) -> MaskedPPO:
    torch.manual_seed(0)
    return MaskedPPO(
        observation_space=Dict({"observation": Box(0, 1, (num_observed,)), "action_mask": Box(0, 1, (num_actions,))}),
        action_space=Discrete(num_actions),
        model_config={
            "fcnet_hiddens": [hidden],
            "fcnet_activation": "silu",
            "head_fcnet_hiddens": [],
            "vf_share_layers": False,
        },
    )


def test_illegal_actions_have_no_chance_and_others_their_share() -> None:
    module = module_of(79, 225, 8)
    batch = Batch(50, start="uniform")
    batch.seed(range(50))
    shown = batch.deal()
    seen = {"observation": torch.from_numpy(shown.observations), "action_mask": torch.from_numpy(shown.masks)}
    everything = {**seen, "action_mask": torch.ones_like(seen["action_mask"])}
    masked, open_ = (module.forward_train({"obs": each})["action_dist_inputs"] for each in (seen, everything))
    chances = module.get_train_action_dist_cls().from_logits(masked)._dist.probs
    assert (chances[shown.masks == 0] == 0).all()
    expected = open_.softmax(1) * seen["action_mask"]
    torch.testing.assert_close(chances, expected / expected.sum(1, keepdim=True))
    assert module.compute_values({"obs": seen}).shape == (50,)


def test_no_two_rows_of_all_env_runners_play_the_same_dice() -> None:
    """RLlib gives them the seeds s + 1, s + 2, ...; so would rows of a batch count."""
    firsts = []
    for seed in range(100, 104):
        rows, _ = MaskedBatch({"num_envs": 64}).reset(seed=seed)
        firsts.append(rows["observation"])
    again, _ = MaskedBatch({"num_envs": 64}).reset(seed=100)
    np.testing.assert_array_equal(again["observation"], firsts[0])
    for one in range(4):
        for other in range(one):
            same = [np.mean((firsts[one][k:] == firsts[other][: 64 - k]).all(1)) for k in range(4)]
            assert max(same) < 0.2, "first rolls: one of 252, so a few are the same"


def test_points_are_scaled_and_what_is_illegal_is_an_error() -> None:
    env = MaskedBatch({"num_envs": 8, "points_per_reward": 20.0, "start": "open:1"})
    seen, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="illegal"):
        env.step(seen["action_mask"].argmin(1))
    _, rewards, terminated, _, infos = env.step(
        seen["action_mask"].shape[1] - 1 - seen["action_mask"][:, ::-1].argmax(1)
    )
    assert infos == {}
    assert terminated.any()
    np.testing.assert_allclose(20 * rewards, np.round(20 * rewards), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--num-env-runners 600", "num_env_runners=600 is not from 0 to num_envs=512"),
        ("--num-env-runners -1", "num_env_runners=-1 is not from 0 to"),
        ("--address nonsense", "address='nonsense' is not one of local, auto, HOST:PORT"),
        ("--address 127.0.0.1:{port}", "no Ray cluster answers at 127.0.0.1:{port}"),
        ("--address auto", "no Ray cluster answers at 127.0.0.1:{port}"),
        ("--observation dict", "invalid choice 'dict'"),
        ("--opponents greedy", "opponents=('greedy',): rllib_ppo plays solitaire"),
        ("--initial-policy policy.safetensors", "initial_policy='policy.safetensors': rllib_ppo plays solitaire"),
        ("--num-env-runners 500", f"num_env_runners=500 need a CPU each, there are {os.cpu_count()}; give fewer"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    options: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    assert train.main(["rllib_ppo", *options.format(port=port).split(), "--run", str(tmp_path / "run")]) == 2
    printed = capsys.readouterr()
    assert message.format(port=port) in printed.err
    assert printed.err.count("\n") == 1, printed.err
    assert not list(tmp_path.iterdir())


def test_a_local_ray_leaves_a_whole_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = trained(*SMALL, "--steps", 4 * ROLLOUT, "--num-env-runners", 2, "--run", folder)
    assert done.returncode == 0, done.stderr
    rows = curve_of(folder)
    assert [round(int(row["steps"]) / ROLLOUT) for row in rows] == [1, 2, 3, 4]
    assert {row["env_runners"] for row in rows} == {"2"}
    assert float(rows[-1]["selection_score"]) > 20
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "sessions.json", "curve.csv", "curve.png", "tensorboard", "checkpoint.pt",
        "policy.safetensors", "best.safetensors",
    }  # fmt: skip

    policy = load_policy(folder / "policy.safetensors")
    assert policy.provenance == Provenance.from_json((folder / "config.json").read_text())
    assert policy.provenance.config["num_env_runners"] == 2
    module = module_of(79, 225, 16)
    module.load_state_dict(torch.load(folder / "checkpoint.pt", weights_only=True)["state"]["module"])
    shown = np.random.default_rng(0).random((100, 79), np.float32)
    seen = {"observation": torch.from_numpy(shown), "action_mask": torch.ones(100, 225)}
    theirs = module.forward_inference({"obs": seen})["action_dist_inputs"].numpy(force=True)
    np.testing.assert_allclose(policy.network(shown), theirs, atol=1e-5)
    assert (play(make(f"policy:{folder / 'policy.safetensors'}"), 20, seed=0).totals > 0).all()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Nodes(NamedTuple):
    address: str
    folder: Path

    def env_runners(self) -> dict[int, int]:
        """Process of each env runner -> process of its node."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                title, parent = (
                    (process / "cmdline").read_text(),
                    (process / "stat").read_text().split(") ")[1].split()[1],
                )
                if title.startswith("ray::SingleAgentEnvRunner"):
                    found[int(process.name)] = int(parent)
            except OSError:  # it has ended
                continue
        return {
            one: node for one, node in found.items() if str(self.folder) in Path(f"/proc/{node}/cmdline").read_text()
        }


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A head and a worker with one CPU each."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # names of sockets are short: pytest's folders are too deep
    cluster = Nodes(f"127.0.0.1:{free_port()}", folder)
    port = cluster.address.split(":")[1]
    start = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus", "1", "--disable-usage-stats"]
    started = []
    try:
        for kind in (
            ["--head", "--port", port, "--temp-dir", str(folder), "--include-dashboard", "false"],
            ["--address", cluster.address],
        ):
            node = subprocess.Popen(
                [*start, "--node-ip-address", "127.0.0.1", *kind],
                env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            )  # fmt: skip
            started.append(node)
            assert node.stdout
            told = []
            for line in node.stdout:
                told.append(line)
                if "Ray runtime started" in line:
                    break
            assert "Ray runtime started" in told[-1], "".join(told)
        yield cluster
    finally:
        for node in reversed(started):
            node.terminate()
            node.communicate(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_lost_env_runner_is_replaced_and_a_killed_run_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    there = "--address", nodes.address
    run = subprocess.Popen(
        command(*SMALL, "--steps", 10**7, "--checkpoint-minutes", 0, "--num-env-runners", 2, *there, "--run", folder),
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    try:
        wait_for(lambda: len(curve_of(folder)) >= 2, run)
        env_runners = nodes.env_runners()
        assert len(set(env_runners.values())) == 2, "one on each node"
        os.kill(next(iter(env_runners)), signal.SIGKILL)
        wait_for(lambda: curve_of(folder)[-1]["replaced_env_runners"] == "1", run)
        wait_for(lambda: curve_of(folder)[-1]["env_runners"] == "2", run)
        other = trained(*SMALL, "--steps", ROLLOUT, "--num-env-runners", 1, *there, "--run", tmp_path / "other")
        refused = "num_env_runners=1 need a CPU each, of 2 others hold 2; give fewer, or wait"
        assert (other.returncode, other.stderr) == (2, f"train.py: {refused}\n")
    finally:
        run.kill()
        run.wait()
    before = int(curve_of(folder)[-1]["steps"])
    assert not (folder / "policy.safetensors").exists()

    done = trained("--resume", folder, "--steps", before + 2 * ROLLOUT, "--num-env-runners", 1, *there)
    assert done.returncode == 0, done.stderr
    steps = [int(row["steps"]) for row in curve_of(folder)]
    assert steps == sorted(set(steps))
    assert steps[-1] >= before + 2 * ROLLOUT
    first, second = json.loads((folder / "sessions.json").read_text())
    assert first["steps_before"] == 0
    assert second["steps_before"] in steps
    assert (folder / "policy.safetensors").exists()


def test_more_env_runners_than_cpus_are_refused(nodes: Nodes, tmp_path: Path) -> None:
    done = trained(*SMALL, "--num-env-runners", 3, "--address", nodes.address, "--run", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "train.py: num_env_runners=3 need a CPU each, there are 2; give fewer\n"
    assert not list(tmp_path.iterdir())


def test_the_benchmark_measures_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the env runner looks it up too
    benchmark = importlib.import_module("rllib_speed")
    config = Config(num_env_runners=1, num_envs=16, rollout_steps=16, batch_size=64, epochs=1, hidden_sizes=(16,))
    measured = benchmark.measured(config)
    assert re.match(r"1 env runner\(s\): [1-9][\d,]* decisions a second on the clock; [1-9]", measured), measured
