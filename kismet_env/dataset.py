"""Offline data with the truth beside it: games of any mix of players, in shards that numpy reads.

    python -m kismet_env.dataset --out data --episodes 10000 --mix random=1 medium=2 expert=1

    for shard in read("data"):
        shard["observations"], shard["actions"], shard["action_values"]

A shard is an .npz file of whole episodes, one row a step, in the terms of Minari and d3rlpy; see FIELDS. Beside the
shards lie `dataset.json`, which says what is in them, with hashes, and a datasheet, `README.md`. The data follow from
the options alone: not from the size of shards or the number of processes.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kismet_env.batch import Batch
from kismet_env.bots import Player, make
from kismet_env.command_line import check_writable, progress_bar, refusing, run, write_whole
from kismet_env.dice import hash_words
from kismet_env.evaluation import DATA_DICE, game_keys, map_parts, rounds
from kismet_env.observation import decode, layout_of
from kismet_env.provenance import ENV_ID, package_versions
from kismet_env.rules import Rules
from kismet_env.solver import Optimum, solve
from kismet_env.starts import open_boxes_of

SCHEMA = 1
"""Version of the form of a data set."""
MANIFEST = "dataset.json"
LEVELS = {"medium": "boltzmann:2", "expert": "boltzmann:0.2"}
"""Short names in a mix; "random" is a player by that name."""
FIELDS = {
    "observations": '(T, D) float32: what the player saw, form "features"',
    "action_masks": '(T, 225) bool: the legal actions, numbering "keeps"',
    "actions": "(T,) int64: what was played",
    "behavior_probabilities": "(T,) float64: how probable that was to who played; 1 for who draws no lots",
    "rewards": "(T,) float32: points of the step, bonus included; they add up to the score",
    "terminations": "(T,) bool: the game has ended with this step",
    "truncations": "(T,) bool: it was cut off, which happens to who plays 100 illegal actions",
    "action_values": "(T, 225) float32: exact points still to come after each action if all that follows is perfect, "
    "-inf where illegal",
    "episode_ids": "(T,) int64: number of the episode, ascending",
    "policy_ids": "(T,) int64: who played it, index into the policies of dataset.json",
}
"""The arrays of a shard and what they hold; T steps. What follows a step is in the next row of its episode."""

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Config:
    """Write games of a mix of players, with masks, propensities and exact action values, for offline learning."""

    out: Path
    """Folder for the data; a new or an empty one."""
    episodes: int = 1000
    """How many games."""
    mix: tuple[str, ...] = ("random=1", "medium=1", "expert=1")
    """Who plays, as NAME=SHARE: players as evaluate.py names them, medium (boltzmann:2) and expert (boltzmann:0.2).
    Each game is played by one of them, who is drawn with his share."""
    seed: int = 0
    """Which dice and whose turn it is: the same seed, the same data."""
    start: str = "full"
    """Where games begin: full, open:k (k boxes open) or uniform."""
    rules: Rules = field(default_factory=Rules)
    action_values: bool = True
    """Put the exact action values in. Without them files are a third as large."""
    shard_episodes: int = 1000
    """Games in one file; about 60 MB of memory for a thousand, in each process."""
    processes: int = 1
    """How many processes play; the data are the same for any number."""
    trust: bool = False
    """Load sb3 files, which can run any code."""


class Policy(NamedTuple):
    """A player in a mix."""

    name: str
    share: float  # of the games; all shares sum to 1
    player: Player


class Shard(NamedTuple):
    """What is remembered of a shard that has been written."""

    file: str
    sha256: str  # of the file
    steps: int
    digests: bytes  # SHA-256 of each episode, one after the other
    policies: npt.NDArray[np.int64]  # (episodes,): who played each
    returns: npt.NDArray[np.float64]  # (episodes,): its score


def policies_of(mix: tuple[str, ...], rules: Rules, *, trust: bool = False) -> list[Policy]:
    """Return the players of a mix, see Config; ValueError for what is none."""
    shares: dict[str, float] = {}
    for part in mix:
        name, _, share = part.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            number = 0.0
        if not name or not 0 < number < float("inf"):
            raise ValueError(f"mix {part!r} is not NAME=SHARE with a positive share, such as expert=0.5")
        name = LEVELS.get(name, name)
        if name in shares:
            raise ValueError(f"player {name!r} is twice in the mix; give him one share")
        shares[name] = number
    if not shares:
        raise ValueError("nobody is in the mix; for example --mix random=1 expert=1")
    total = sum(shares.values())
    return [Policy(name, share / total, make(name, rules, trust=trust)) for name, share in shares.items()]


def play_episodes(
    policies: list[Policy],
    episodes: range,
    *,
    seed: int,
    rules: Rules | None = None,
    start: str = "full",
    optimum: Optimum | None = None,
) -> Arrays:
    """Return the steps of `episodes` as arrays, see FIELDS; without "action_values" where there is no `optimum`.

    Episode e has the dice of the key hash_words(DATA_DICE, seed, e), from which its player is drawn too. Arrays go from
    episode to episode and in each from its start to its end.
    """
    keys = game_keys(DATA_DICE, seed, episodes)
    bounds = np.cumsum([policy.share for policy in policies])[:-1]
    drawn = np.searchsorted(bounds, [np.random.default_rng(int(key)).random() for key in keys], side="right")
    parts: list[Arrays] = []
    for number, policy in enumerate(policies):
        if not (chosen := np.flatnonzero(drawn == number)).size:
            continue
        batch = Batch(len(chosen), rules=rules, start=start)
        for played in rounds(policy.player, batch, batch.deal_keys(keys[chosen])):
            rows, before, after = np.arange(len(played.games)), played.before, played.after
            chances = played.probabilities
            parts.append(
                {
                    "observations": before.observations,
                    "action_masks": before.masks > 0,
                    "actions": played.actions,
                    "behavior_probabilities": np.ones(len(rows)) if chances is None else chances[rows, played.actions],
                    "rewards": after.rewards[:, 0].astype(np.float32),
                    "terminations": after.terminated,
                    "truncations": after.truncated,
                    "episode_ids": episodes.start + chosen[played.games],
                    "policy_ids": np.full(len(rows), number),
                }
            )
            if optimum:
                exact = optimum.action_values(*decode(before.observations))
                parts[-1]["action_values"] = exact.astype(np.float32)
    order = np.argsort(np.concatenate([part["episode_ids"] for part in parts]), kind="stable")
    return {name: np.concatenate([part[name] for part in parts])[order] for name in FIELDS if name in parts[0]}


def _write_shard(folder: Path, shard_episodes: int, play: Callable[[range], Arrays], episodes: range) -> Shard:
    """Play and write one shard."""
    steps = play(episodes)
    ids = steps["episode_ids"]
    starts = np.searchsorted(ids, np.array(episodes))
    ends = np.append(starts[1:], len(ids))
    digests = []
    for begin, end in zip(starts, ends, strict=True):
        digest = hashlib.sha256()
        for name, array in steps.items():
            digest.update(name.encode())
            digest.update(array[begin:end].tobytes())
        digests.append(digest.digest())
    file = io.BytesIO()
    np.savez_compressed(file, **steps)  # type: ignore[arg-type]
    name = f"shard-{episodes.start // shard_episodes:05d}.npz"
    write_whole(folder / name, file.getvalue())
    return Shard(
        name,
        hashlib.sha256(file.getbuffer()).hexdigest(),
        len(ids),
        b"".join(digests),
        steps["policy_ids"][starts],
        np.add.reduceat(steps["rewards"].astype(np.float64), starts),
    )


class Tally:
    """What is known of a data set while it is being written: little, however large it is."""

    def __init__(self, policies: list[Policy]) -> None:
        self.shards: list[dict[str, Any]] = []
        self.episodes = self.steps = 0
        self._policies, self._hash = policies, hashlib.sha256()
        self._sums = np.zeros((len(policies), 3))  # [policy]: episodes, sum of scores, sum of their squares

    def add(self, shard: Shard) -> None:
        """Count the next shard in."""
        count = len(shard.returns)
        self.shards.append(
            {
                "file": shard.file,
                "episodes": [self.episodes, self.episodes + count],
                "steps": shard.steps,
                "sha256": shard.sha256,
            }
        )
        self.episodes += count
        self.steps += shard.steps
        self._hash.update(shard.digests)
        powers = np.stack([shard.returns**power for power in range(3)], axis=1)
        np.add.at(self._sums, shard.policies, powers)

    def manifest(self, config: Config, best: float | None) -> dict[str, Any]:
        """Return what `dataset.json` holds; `best` is the mean of perfect play, if that is known."""
        policies = []
        for policy, (count, total, squares) in zip(self._policies, self._sums.tolist(), strict=True):
            mean = total / count if count else None
            sd = max(0.0, squares - total * total / count) / (count - 1) if count > 1 else None
            about = {"policy": policy.name, "share": policy.share, "episodes": int(count)}
            policies.append({**about, "mean_return": mean, "sd_return": None if sd is None else sd**0.5})
        fields_ = {name: text for name, text in FIELDS.items() if config.action_values or name != "action_values"}
        return {
            "schema": SCHEMA,
            "sha256": self._hash.hexdigest(),
            "env_id": ENV_ID,
            "rules": asdict(config.rules),
            "start": config.start,
            "seed": config.seed,
            "episodes": self.episodes,
            "steps": self.steps,
            "policies": policies,
            "optimum": best,
            "layout": layout_of(config.rules).fingerprint,
            "fields": fields_,
            "shards": self.shards,
            "versions": package_versions(),
        }


def write(config: Config, report: Callable[[int], None] = lambda episodes: None) -> dict[str, Any]:
    """Write the data set of `config` and return its manifest; `report` hears how many more episodes there are.

    Manifest and datasheet are written anew with every shard, so that whatever ends this early leaves a smaller data
    set; what can be caught, such as Ctrl-C, takes away what does not belong to it and is passed on. Raises ValueError,
    and writes nothing, for options that are not valid.
    """
    policies = _checked(config)
    play = partial(
        play_episodes,
        policies,
        seed=config.seed,
        rules=config.rules,
        start=config.start,
        optimum=solve(config.rules, progress=True) if config.action_values else None,
    )
    size = config.shard_episodes
    parts = [range(first, min(first + size, config.episodes)) for first in range(0, config.episodes, size)]
    tally = Tally(policies)
    best = solve(config.rules).start_value(config.start) if config.action_values else None

    def describe() -> None:
        manifest = tally.manifest(config, best)
        write_whole(config.out / MANIFEST, json.dumps(manifest, indent=2, allow_nan=False) + "\n")
        write_whole(config.out / "README.md", datasheet(manifest))

    try:
        for shard in map_parts(partial(_write_shard, config.out, size, play), parts, config.processes):
            tally.add(shard)
            describe()
            report(len(shard.returns))
    finally:
        if config.out.is_dir():
            whole = {shard["file"] for shard in tally.shards}
            for path in [*config.out.glob("shard-*.npz"), *config.out.glob(".shard-*.part")]:
                if path.name not in whole:
                    path.unlink()
        if tally.shards:
            describe()
    return tally.manifest(config, best)


def _checked(config: Config) -> list[Policy]:
    """Return the players of a data set that can be written; ValueError for one that cannot."""
    for option in ("episodes", "shard_episodes", "processes"):
        if getattr(config, option) < 1:
            raise ValueError(f"--{option} {getattr(config, option)} is not at least 1")
    hash_words(config.seed)  # refuses what is no seed
    open_boxes_of(config.start)
    check_writable(config.out, folder=True)
    if config.out.exists() and any(config.out.iterdir()):
        raise ValueError(f"{config.out} is not empty; give a new folder")
    return policies_of(config.mix, config.rules, trust=config.trust)


def read(folder: Path | str, *, check: bool = True) -> Iterator[Arrays]:
    """Yield the arrays of every shard of a data set, see FIELDS, one after the other.

    Raises FileNotFoundError without the data set, ValueError for one of another schema or whose manifest is damaged
    and, where `check` is set, for a file that has changed.
    """
    folder = Path(folder)
    for name, digest in _files_of(folder / MANIFEST):
        content = (folder / name).read_bytes()
        if check and hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{folder / name} does not have its checksum")
        with np.load(io.BytesIO(content)) as arrays:
            yield dict(arrays)


def _files_of(path: Path) -> list[tuple[str, str]]:
    """Return name and SHA-256 of every shard that the manifest at `path` tells of; ValueError for what is none."""
    try:
        manifest = json.loads(path.read_text())
        schema, files = manifest["schema"], [(shard["file"], shard["sha256"]) for shard in manifest["shards"]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged; make the data set again") from None
    if schema != SCHEMA:
        raise ValueError(f"{path} has schema {schema!r}, this version reads {SCHEMA}")
    return files


def datasheet(manifest: dict[str, Any]) -> str:
    """Return the datasheet of a data set, after Gebru et al. (2021), as markdown."""
    changed = {name: value for name, value in manifest["rules"].items() if value != asdict(Rules())[name]}
    played = "\n".join(
        f"| {number} | {policy['policy']} | {policy['share']:.3f} | {policy['episodes']:,} | "
        + ("- | - |" if policy["sd_return"] is None else f"{policy['mean_return']:.2f} | {policy['sd_return']:.2f} |")
        for number, policy in enumerate(manifest["policies"])
    )
    fields_ = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in manifest["fields"].items())
    optimum = manifest["optimum"]
    best = "" if optimum is None else f" The best possible mean is {optimum:.4f}, exactly."
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    return f"""# Datasheet: games of solitaire Kismet

The headings are those of Gebru et al., *Datasheets for Datasets*, Communications of the ACM 64(12), 2021.

## Motivation

For offline reinforcement learning, imitation and off-policy evaluation in a game whose exact answers are known: every
step has the probability with which it was taken and, where they were asked for, the exact value of every action.

## Composition

{manifest["episodes"]:,} whole games with {manifest["steps"]:,} steps of `{manifest["env_id"]}`, simulated; start:
{manifest["start"]}, rules: {changed or "standard"}. Nothing is missing, nobody is concerned, there are no splits.{best}

| id | policy | share | games | mean return | SD |
|---|---|---|---|---|---|
{played}

Rows are steps, those of a game one after the other:

| array | holds |
|---|---|
{fields_}

`action_values` are rounded to float32, by less than 0.00002 points, so that exact ties may be gone.

## Collection

Made by `python -m kismet_env.dataset` with seed {manifest["seed"]}. Game e has the dice of the key hash_words(5, seed,
e); a player is drawn for it with his share and plays it to its end. Versions: {versions}.

## Preprocessing

None. SHA-256 of the data, whatever the size of the shards: `{manifest["sha256"]}` (that of the SHA-256 of every game,
which is over name and bytes of each array in the order above). `dataset.json` has that of each file.

## Uses

Discount nothing: the return is the score. Split by game, not by step. The dice share no game with those of training,
selection and evaluation in kismet-env. Nothing can be estimated of a policy that does what no policy of the mix does.

## Distribution and maintenance

Whoever has made the data decides; they can be made again from the options above and the same versions.
"""


def main(config: Config) -> None:
    """Play and write."""
    with refusing():
        _checked(config)
    if config.action_values:
        solve(config.rules, progress=True)
    try:
        with progress_bar() as bar, refusing():
            manifest = write(config, partial(bar.advance, bar.add_task("episodes", total=config.episodes)))
    except BaseException:
        if (about := config.out / MANIFEST).exists():  # only if it is ours: the folder was empty
            done = json.loads(about.read_text())["episodes"]
            print(f"{config.out}: {done:,} of {config.episodes:,} episodes are there, in whole shards", file=sys.stderr)
        raise
    print(f"{config.out}: {manifest['episodes']:,} episodes, {manifest['steps']:,} steps, {manifest['sha256']}")


if __name__ == "__main__":
    sys.exit(run(main, Config, program="python -m kismet_env.dataset"))
