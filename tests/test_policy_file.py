"""Portable policies: what is saved comes back, and what is damaged, hostile or of another world is refused unread."""

import json
import os
import pickle
import re
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from kismet_env import policy_file
from kismet_env.actions import actions_of
from kismet_env.policy_file import ACTIVATIONS, POLICY_FORMAT, Network, Policy, load_policy, save_policy
from kismet_env.provenance import ENV_ID, Provenance, layout_read
from kismet_env.rules import SUITE, Rules

HIDDEN = 4


def policy(
    kind: str = "actor",
    *,
    rules: str | None = None,
    observation: str = "raw",
    actions: str = "holds",
    activation: str = "silu",
    hidden: tuple[int, ...] = (HIDDEN,),
) -> Policy:
    """A policy with random weights."""
    config = {"epochs": 3}
    provenance = Provenance.of(
        "test", rules=Rules.of(rules), seed=5, observation=observation, actions=actions, config=config
    )
    outputs = actions_of(actions).num_actions if kind == "actor" else 1
    sizes = (layout_read(provenance.rules, 1, observation).size, *hidden, outputs)
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(after, before)), rng.normal(size=after)) for before, after in pairwise(sizes)]
    return Policy(kind, Network(layers, activation), provenance)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some" / "folder" / "policy.safetensors"


CASES = {
    "actor": policy(),
    "features": policy(observation="features", actions="keeps", hidden=(8, 8), activation="relu"),
    "no hidden layer": policy(hidden=()),
    "other rules": policy(rules="one_bonus", activation="tanh"),
    "card_value": policy("card_value", observation="card", hidden=(8, 8)),
}


@pytest.mark.parametrize("saved", CASES.values(), ids=CASES)
def test_what_is_saved_comes_back(path: Path, saved: Policy) -> None:
    save_policy(path, saved)
    loaded = load_policy(path, saved.provenance.rules)
    assert (loaded.kind, loaded.provenance) == (saved.kind, saved.provenance)
    assert loaded.network.activation == saved.network.activation
    assert loaded.network.sizes == saved.network.sizes
    inputs = np.random.default_rng(1).random((9, saved.network.sizes[0]), np.float32)
    assert (loaded.network(inputs) == saved.network(inputs)).all()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_file_is_one_that_others_can_read(path: Path) -> None:
    save_policy(path, CASES["actor"])
    arrays = safetensors.numpy.load_file(path)
    assert sorted(arrays) == ["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]
    assert arrays["layers.0.weight"].shape == (HIDDEN, 56)
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    texts = header_of(path.read_bytes())["__metadata__"]
    assert set(texts) == {"format", "kind", "architecture", "provenance"}
    assert json.loads(texts["architecture"]) == {"layer_sizes": [56, HIDDEN, 46], "activation": "silu"}
    assert json.loads(texts["provenance"])["rules"]["joker"] == "full"


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_numpy_computes_what_torch_computes(activation: str, scale: float) -> None:
    torch = pytest.importorskip("torch")
    layer_of = {"silu": torch.nn.SiLU, "relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}
    assert set(layer_of) == set(ACTIVATIONS)
    torch.manual_seed(0)
    first, second, third = (torch.nn.Linear(*sizes) for sizes in ((79, 64), (64, 64), (64, 225)))
    with torch.no_grad():
        for layer in (first, second):
            layer.weight *= scale
    theirs = torch.nn.Sequential(first, layer_of[activation](), second, layer_of[activation](), third)
    ours = Network([(each.weight.detach(), each.bias.detach()) for each in (first, second, third)], activation)
    inputs = np.random.default_rng(0).random((500, 79), np.float32)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(inputs)).numpy()
    np.testing.assert_allclose(ours(inputs), expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max()))


def test_the_largest_weights_do_not_overflow() -> None:
    largest = np.finfo(np.float32).max
    widths = [79] + [3] * 6 + [46]
    layers = [(np.full((after, before), largest), np.full(after, largest)) for before, after in pairwise(widths)]
    for activation in ACTIVATIONS:
        assert np.isfinite(Network(layers, activation)(np.ones((2, 79), np.float32))).all()


SHAPES = {
    "weights do not chain": ([((4, 56), (4,)), ((46, 5), (46,))], "layer 0 .* does not lead from 56 numbers to 5"),
    "a bias too long": ([((46, 56), (47,))], "does not lead"),
    "a weight with one axis": ([((46,), (46,))], "layer_sizes"),
    "a bias with two axes": ([((46, 56), (46, 1))], "does not lead"),
    "nothing": ([], "layers"),
    "a layer of nothing": ([((0, 56), (0,)), ((46, 0), (46,))], "layer_sizes"),
}


@pytest.mark.parametrize(("shapes", "message"), SHAPES.values(), ids=SHAPES)
def test_layers_that_do_not_fit_are_no_network(shapes: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Network([(np.zeros(weight), np.zeros(bias)) for weight, bias in shapes], "relu")


def test_what_could_not_be_loaded_is_not_saved(path: Path) -> None:
    good, card = CASES["actor"], CASES["card_value"]
    wrong = {
        "critic": good._replace(kind="critic"),
        "card_value": good._replace(kind="card_value"),
        "actor": card._replace(kind="actor"),
        "from 79 numbers to 225, .* from 56 to 46": good._replace(network=CASES["features"].network),
        "from 56 numbers to 46, .* from 75 to 46": good._replace(provenance=replace(good.provenance, num_players=2)),
        "2 players, kind card_value": card._replace(provenance=replace(card.provenance, num_players=2)),
    }
    for message, each in wrong.items():
        with pytest.raises(ValueError, match=message):
            save_policy(path, each)
    for weight in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            Network([(np.full((46, 56), weight), np.zeros(46))], "relu")
    assert not path.parent.exists()


# --- what is refused ---


def header_of(content: bytes) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return header


def file_of(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class Forger:
    """Makes bad files of a good one: 56 -> 4 -> 46, in the order weight 1, weight 0, bias 1, bias 0 or another."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.header = header_of(content)
        self.data = content[8 + int.from_bytes(content[:8], "little") :]

    def header_with(self, change: Callable[[dict[str, Any]], None]) -> bytes:
        header = json.loads(json.dumps(self.header))
        change(header)
        return file_of(header, self.data)

    def text(self, **texts: Any) -> bytes:
        return self.header_with(lambda header: header["__metadata__"].update(texts))

    def without(self, text: str) -> bytes:
        return self.header_with(lambda header: header["__metadata__"].pop(text))

    def architecture(self, **values: Any) -> bytes:
        return self.text(architecture=json.dumps(json.loads(self.header["__metadata__"]["architecture"]) | values))

    def provenance(self, **values: Any) -> bytes:
        return self.text(provenance=json.dumps(json.loads(self.header["__metadata__"]["provenance"]) | values))

    def entry(self, name: str, **values: Any) -> bytes:
        return self.header_with(lambda header: header[name].update(values))

    def moved(self, name: str, by: int) -> bytes:
        begin, end = self.header[name]["data_offsets"]
        return self.entry(name, data_offsets=[begin + by, end + by])

    def of(self, arrays: dict[str, np.ndarray[Any, Any]], **architecture: Any) -> bytes:
        content = Forger(self.architecture(**architecture))
        return safetensors.numpy.save(arrays, content.header["__metadata__"])

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: array.copy() for name, array in safetensors.numpy.load(self.content).items()}


DEEP = "[" * 100_000


def bad_files(good: Forger) -> Iterator[tuple[str, bytes, str]]:
    """Yield what is wrong, the file, and what the refusal says."""
    content, weight, bias = good.content, "layers.0.weight", "layers.1.bias"
    yield "empty", b"", "no .safetensors file"
    yield "a few bytes", content[:5], "no .safetensors file"
    yield "zeros", bytes(10_000), "no .safetensors file"
    yield "text", b"no policy, but long enough to have a header\n" * 100, "no .safetensors file"
    yield "a pickle", pickle.dumps([0.5] * 1000), "no .safetensors file"
    yield "an endless header", (2**64 - 1).to_bytes(8, "little") + content[8:], "18,446,744,073,709,551,615 bytes"
    yield "a header of 10 GB", (10**10).to_bytes(8, "little") + content[8:], "header of 10,000,000,000 bytes"
    yield "a header of 2 MB", file_of(b" " * 2_000_000, b""), "header of 2,000,000 bytes"
    yield "a header longer than the file", len(content).to_bytes(8, "little") + content[8:], "header of"
    yield "no JSON", file_of(b"{" * 100, b""), "not JSON"
    yield "no text", file_of(b'{"\xff\xfe": 1}', b""), "not JSON"
    yield "deep JSON", file_of(DEEP.encode(), b""), "not JSON"
    yield "long numbers", file_of(b'{"a": ' + b"9" * 100_000 + b"}", b""), "not JSON"
    yield "a list", file_of([], b""), "not a JSON object"
    yield "texts that are no texts", good.text(kind=["actor"]), "not texts"
    yield "texts in a list", good.header_with(lambda header: header.update(__metadata__=[])), "not texts"
    yield "no texts", good.header_with(lambda header: header.pop("__metadata__")), f"format None.*{POLICY_FORMAT}"

    yield "cut off", content[:-1], "the file has"
    yield "a byte more", content + b"\0", "the file has"
    yield "much more", content + bytes(10_000), "the file has"
    yield "overlapping", good.moved(weight, -4), "instead of"
    yield "a gap", good.moved(weight, 4), "instead of"
    yield "outside", good.moved(bias, 10**12), "instead of"
    yield "backwards", good.entry(bias, data_offsets=[184, 0]), "begins|size"
    yield "negative", good.moved(bias, -(10**6)), "describes no array"
    yield "offsets that are no numbers", good.entry(bias, data_offsets=["0", "184"]), "describes no array"
    yield "offsets with a fraction", good.entry(bias, data_offsets=[0.0, 184.0]), "describes no array"
    yield "three offsets", good.entry(bias, data_offsets=[0, 92, 184]), "describes no array"
    yield "a shape of another size", good.entry(weight, shape=[4, 57]), "does not have its size"
    yield "a shape of 10 GB", good.entry(weight, shape=[50_000, 50_000]), "does not have its size"
    yield "a shape without end", good.entry(weight, shape=[2**62] * 4), "does not have its size"
    yield "a shape with endless numbers", good.entry(weight, shape=[10**4000]), "describes no array"
    yield "many axes", good.entry(weight, shape=[1] * 10_000 + [4, 56]), "describes no array"
    yield "a negative shape", good.entry(weight, shape=[-4, -56]), "describes no array"
    yield "a true shape", good.entry(bias, shape=[True, 46]), "describes no array"
    yield "an entry too much", good.entry(weight, author="somebody"), "describes no array"
    yield "no entry", good.header_with(lambda header: header.update({weight: None})), "describes no array"
    yield "an unknown type", good.entry(weight, dtype="BF16"), "'BF16', not one of .*F32"
    yield "a type that is no text", good.entry(weight, dtype=["F32"]), "describes no array"
    wide = {name: array.astype(np.float64) for name, array in good.arrays().items()}
    yield "float64", good.of(wide), "type float64, not float32"
    yield "whole numbers", good.of(good.arrays() | {bias: np.zeros(46, np.uint16)}), "type uint16, not float32"

    yield "other shapes", good.of(good.arrays() | {weight: np.zeros((56, 4), np.float32)}), r"\(56, 4\).*\(4, 56\)"
    flat = good.arrays() | {weight: np.zeros(4 * 56, np.float32)}
    yield "a shape without columns", good.of(flat), r"\(224,\).*\(4, 56\)"
    odd = good.arrays() | {weight: np.zeros((5, 56), np.float32), "layers.0.bias": np.zeros(5, np.float32)}
    yield "shapes that do not chain", good.of(odd), r"\(5,\)|\(5, 56\)"
    yield "another architecture", good.architecture(layer_sizes=[56, 5, 46]), "the architecture has"
    fewer = good.arrays()
    del fewer[bias]
    yield "no bias", good.of(fewer), f"too much or missing.*{bias}"
    yield "an array too much", good.of(good.arrays() | {"extra": np.zeros(3, np.float32)}), "too much.*extra"
    yield "a layer too few", good.architecture(layer_sizes=[56, 4, 4, 46]), "too much or missing"

    yield "no format", good.without("format"), "format None"
    yield "another format", good.text(format="kismet-env policy 2"), f"policy 2'.*{POLICY_FORMAT}"
    yield "a long format", good.text(format="x" * 100_000), f"format 'x.*{POLICY_FORMAT}"
    for text in ("kind", "architecture", "provenance"):
        yield f"no {text}", good.without(text), f"nothing of its {text}"
    yield "an unknown kind", good.text(kind="critic"), "'critic' is not one of actor, card_value"
    yield "another kind", good.text(kind="card_value"), "reads card, not observation='raw'"
    yield "no architecture", good.text(architecture="{"), "architecture is not JSON"
    yield "a deep architecture", good.text(architecture=DEEP), "architecture is not JSON"
    yield "a list of an architecture", good.text(architecture="[]"), "not one of layer_sizes"
    yield "an architecture with more", good.architecture(dropout=0.5), "not one of layer_sizes"
    yield "an unknown activation", good.architecture(activation="gelu"), "'gelu' is not one of silu, relu, tanh"
    yield "an activation that is no text", good.architecture(activation=None), "not one of layer_sizes"
    yield "no layers", good.architecture(layer_sizes=[56]), "0 layers"
    yield "no sizes", good.architecture(layer_sizes=[]), "layers"
    yield "too many layers", good.architecture(layer_sizes=[56] + [4] * 100 + [46]), "101 layers, not 1 to 7"
    for size in (0, -4, 4.0, "4", True, None, [4], 10**9):
        yield f"a size of {size!r}", good.architecture(layer_sizes=[56, size, 46]), "not whole numbers from 1 to 65,536"
    large = good.architecture(layer_sizes=[56, 60_000, 41_000, 46])
    yield "10 GB of weights", large, "2,4.* weights, at most 16,777,216"
    yield "other inputs", good.architecture(layer_sizes=[57, 4, 46]), "from 57 numbers to 46.*from 56 to 46"
    yield "other outputs", good.architecture(layer_sizes=[56, 4, 225]), "to 225.*from 56 to 46"

    yield "no provenance", good.text(provenance="?"), "provenance of the policy is not JSON"
    yield "a deep provenance", good.text(provenance=DEEP), "provenance of the policy is not JSON"
    yield "another provenance", good.provenance(author="somebody"), "author"
    yield "other rules", good.provenance(rules=asdict(SUITE["strict"])), "kismet_score='flat_50' there, 'sum_plus_50' h"
    yield "unknown rules", good.provenance(rules={"jokers": 2}), "unknown field 'jokers'"
    yield (
        "another layout",
        good.provenance(layout="0123456789abcdef"),
        "layout 0123456789abcdef .* here .* layout [0-9a-f]",
    )
    deep = {"kismet-env": json.loads("[" * 800 + "]" * 800)}
    yield "a deep version", good.provenance(layout="0123", versions=deep), "layout|recursion|JSON"
    yield "another environment", good.provenance(env_id="kismet_env/Kismet-v9"), f"Kismet-v9, this is {ENV_ID}"
    yield "a naughty name", good.provenance(env_id="\x1b[2J\ud800\nx"), r"\\x1b\[2J\\ud800 x, this is"
    yield "a long name", good.provenance(env_id="x" * 100_000), r"the policy was trained on \[\.\.\.\]"
    yield (
        "more players",
        good.provenance(num_players=3, layout=layout_read(Rules(), 3, "raw").fingerprint),
        "from 56 numbers to 46, .* from 93 to 46",
    )
    yield "another form", good.provenance(observation="pixels"), "features, raw, dict"
    numbers = layout_read(Rules(), 1, "dict").fingerprint
    yield "numbers for a form", good.provenance(observation="dict", layout=numbers), "reads features, raw, not"
    yield "another numbering", good.provenance(actions="throws"), "keeps, holds"


def good_file() -> bytes:
    with TemporaryDirectory() as folder:
        save_policy(Path(folder) / "policy.safetensors", CASES["actor"])
        return (Path(folder) / "policy.safetensors").read_bytes()


GOOD = Forger(good_file())
BAD_FILES = list(bad_files(GOOD))


def refusal(path: Path, rules: Rules | None = None) -> str:
    """Why a file is refused; in one line that is short, names the file and obeys nobody."""
    with pytest.raises(ValueError, match=re.escape(repr(str(path)))) as refused:
        load_policy(path, rules)
    message = str(refused.value)
    assert message.isprintable(), "more than one line, or something that a terminal obeys"
    assert len(message) < len(str(path)) + 500
    return message


@pytest.mark.parametrize(("content", "why"), [bad[1:] for bad in BAD_FILES], ids=[bad[0] for bad in BAD_FILES])
def test_a_bad_file_is_refused_in_one_line_before_a_weight_is_read(
    content: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_array(*arguments: Any) -> None:
        raise AssertionError("a weight is read")

    monkeypatch.setattr(policy_file, "read_array", read_array)
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    message = refusal(path)
    assert re.search(why, message), message


def test_the_good_file_is_good(tmp_path: Path) -> None:
    for content in (GOOD.content, GOOD.text(author="somebody"), GOOD.of(GOOD.arrays())):
        (tmp_path / "good.safetensors").write_bytes(content)
        load_policy(tmp_path / "good.safetensors")


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(weight: float, tmp_path: Path) -> None:
    arrays = GOOD.arrays()
    arrays["layers.1.weight"][45, 3] = weight
    (tmp_path / "diverged.safetensors").write_bytes(GOOD.of(arrays))
    assert "layer 1 holds weights that are not finite" in refusal(tmp_path / "diverged.safetensors")


@pytest.mark.parametrize("widths", [(60_000, 41_000), (2_000_000, 1_000)], ids=str)
def test_ten_gigabytes_are_refused_though_they_are_there(widths: tuple[int, int], tmp_path: Path) -> None:
    """A sparse file as long as its header says, all of it in order but for its size."""
    header, at = json.loads(json.dumps(GOOD.header)), 0
    sizes = [56, *widths, 46]
    header["__metadata__"]["architecture"] = json.dumps({"layer_sizes": sizes, "activation": "relu"})
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        for name, shape in (("weight", [outputs, inputs]), ("bias", [outputs])):
            end = at + 4 * int(np.prod(shape))
            header[f"layers.{index}.{name}"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
            at = end
    path = tmp_path / "large.safetensors"
    path.write_bytes(file_of(header, b""))
    os.truncate(path, path.stat().st_size + at)
    assert path.stat().st_size > 8e9
    tracemalloc.start()
    message = refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()
    assert "weights, at most" in message or "65,536" in message


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        assert "no file" in refusal(path)


def test_a_zip_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    assert "no .safetensors file" in refusal(tmp_path / "model.zip")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_header(file: Any) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "secret.safetensors").write_bytes(GOOD.content)
    monkeypatch.setattr(policy_file, "read_header", read_header)
    assert "Permission denied" in refusal(tmp_path / "secret.safetensors")


def test_rules_may_be_given_in_any_form_and_have_to_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    save_policy(path, policy(rules="royal_flush"))
    for rules in (SUITE["royal_flush"], "royal_flush", {"flush_score": 100}):
        assert load_policy(path, rules).provenance.rules == SUITE["royal_flush"]
    assert "flush_score=100 there, 35 here" in refusal(path)


def test_no_damage_does_more_than_be_refused(tmp_path: Path) -> None:
    """A file cut off anywhere, and every byte changed: a ValueError in one line, or a policy."""
    path, content = tmp_path / "damaged.safetensors", GOOD.content
    rng = np.random.default_rng(0)
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        refusal(path)
    reasons = []
    for place in range(8 + int.from_bytes(content[:8], "little")):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            load_policy(path)
        except ValueError as error:
            reasons.append(str(error))
    assert all(reason.isprintable() for reason in reasons)
    assert len(reasons) > place / 2  # not all: no version and no option of the training is impossible
