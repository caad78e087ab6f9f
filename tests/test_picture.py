"""The picture of the table: what can be counted and read in it."""

import copy
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage, signal

import kismet_env  # noqa: F401 (registers the environments)
from kismet_env.actions import actions_of
from kismet_env.batch import Batch
from kismet_env.render.last import Last, last_of
from kismet_env.render.picture import picture
from kismet_env.rules import Box, Rules

Frame = npt.NDArray[np.uint8]
ID = "kismet_env/Kismet-v0"
POSITION = {
    "cards": [{"ACES": 3, "KISMET": 65, "FLUSH": 35}, {"SIXES": 24, "YARBOROUGH": 17, "FOURS": 0}],
    "player": 1,
    "dice": [2, 3, 4, 5, 6],
    "rolls_left": 1,
    "kismets_rolled": [1, 0],
}
COLORS = {1: "black", 2: "red", 3: "green", 4: "green", 5: "red", 6: "black"}


def near(frame: Frame, color: tuple[int, int, int], reach: int = 40) -> npt.NDArray[np.bool_]:
    """Where the picture has about this colour."""
    return np.abs(frame.astype(int) - color).max(2) < reach


def dice_in(frame: Frame) -> list[tuple[str, int]]:
    """Colour and number of the pips of each die, from the left: blobs in the five white squares at the top."""
    top = frame[:160]
    white, _ = ndimage.label(ndimage.binary_fill_holes(near(top, (255, 255, 250), 12)))
    squares = [where for where in ndimage.find_objects(white) if where[0].stop - where[0].start > 50]
    found = []
    for square in sorted(squares, key=lambda where: where[1].start):
        red, green, blue = np.moveaxis(top[square].astype(int), 2, 0)
        kinds = {
            "black": (red < 90) & (green < 90) & (blue < 90),
            "red": (red > 150) & (green < 90),
            "green": (green > 90) & (red < 90),
        }
        pips = {}
        for name, mask in kinds.items():
            blobs, count = ndimage.label(mask)
            sizes = ndimage.sum_labels(mask, blobs, range(1, count + 1))
            pips[name] = int((sizes > 60).sum())  # pixels: smooth edges leave some stray ones
        (name,) = [name for name, count in pips.items() if count]
        found.append((name, pips[name]))
    return found


def shows(frame: Frame, words: str, size: int) -> float:
    """How well the best place of the picture matches `words`, 1 for exactly: their normalised cross-correlation."""
    font = ImageFont.load_default(size * 4)
    canvas = Image.new("L", ((int(font.getlength(words)) // 4 + 3) * 4, size * 8))
    ImageDraw.Draw(canvas).text((4, size * 4), words, font=font, fill=255, anchor="lm")
    template = np.array(canvas.resize((canvas.width // 4, canvas.height // 4), Image.Resampling.BOX), float)
    template = template[size // 2 : -size // 2]  # as high as letters
    template -= template.mean()
    grey = frame.astype(float).mean(2)
    count = template.size
    window = np.ones_like(template)
    means = signal.fftconvolve(grey, window, "valid") / count
    spread = np.sqrt(np.maximum(signal.fftconvolve(grey**2, window, "valid") / count - means**2, 1e-6))
    match = signal.fftconvolve(grey, template[::-1, ::-1], "valid") / count / (spread * template.std())
    return float(np.abs(match[spread > 1]).max())


def shown(position: dict[str, Any], **options: Any) -> Frame:
    """The picture of a position, which it must leave alone, and be the same again."""
    before = copy.deepcopy(position)
    frame = picture(position, Rules(), **options)
    assert position == before
    assert np.array_equal(frame, picture(position, Rules(), **options))
    return frame


def test_dice_have_as_many_pips_as_they_show_in_their_true_colours() -> None:
    for dice in ([1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [6, 6, 6, 6, 6], [1, 1, 1, 3, 6]):
        assert dice_in(shown({**POSITION, "dice": dice})) == [(COLORS[face], face) for face in dice]


def test_kept_dice_are_framed_and_still_readable() -> None:
    dice = [2, 2, 2, 5, 6]
    frame = shown({**POSITION, "dice": dice}, last=Last("kept", kept=(2, 2, 6)))
    rims, _ = ndimage.label(near(frame[:160], (226, 172, 52), 12))
    wide = [where[1].start for where in ndimage.find_objects(rims) if where[1].stop - where[1].start > 60]
    squares = np.linspace(36, 436, 5)
    assert [int(np.abs(squares - start).argmin()) for start in sorted(wide)] == [0, 1, 4]  # of equal dice the first
    assert dice_in(frame) == [(COLORS[face], face) for face in dice]


def test_words_and_numbers_are_there() -> None:
    told = "Player 1: fill Flush, 35 points; Player 2: 0 in Fours"
    frame = shown(POSITION, last=Last(told))
    there = [(told, 17), ("Full House Same Color", 15), ("Two Pair Same Color", 15), ("Basic total", 15)]
    there += [("63: 35 · 71: 55 · 78: 75", 12), ("roll 2 of 3", 15), ("Turn 4 of 15", 15), ("(30)", 16)]
    there += [("60 to go", 13), ("100", 17)]  # player 1: 3 in the Basic, 100 in the Kismet Section
    for words, size in there:
        assert shows(frame, words, size) > 0.999, words
    for words, size in ((told.replace("35", "36"), 17), ("roll 3 of 3", 15), ("62 to go", 13)):
        assert shows(frame, words, size) < 0.999, words


def test_the_end_of_a_game_names_the_winner() -> None:
    full = {box.name: 0 for box in Box} | {"YARBOROUGH": 9}
    position = {**POSITION, "cards": [full, full | {"ACES": 2}], "player": 0}
    frame = shown(position, names=("turn_greedy", "optimal"))
    assert shows(frame, "wins with 11", 15) > 0.999
    assert shows(frame, "Game over", 15) > 0.999
    assert shows(shown({**position, "cards": [full, full]}), "share 9", 15) > 0.999


@pytest.mark.parametrize("num_players", range(1, 7))
def test_any_number_of_players_any_names_and_any_rules_have_one_size(num_players: int) -> None:
    batch = Batch(1, num_players, start="uniform")
    batch.seed([num_players])
    batch.deal()
    tiers = [[10 * n, 400 + n] for n in range(1, 9)]
    for rules in (Rules(), Rules.of({"bonus_tiers": []}), Rules.of({"bonus_tiers": tiers, "flush_score": 500})):
        frame = picture(batch.position(), rules, names=["a name as long as this one, and longer"] * num_players)
        assert frame.shape == (600, 800, 3)
        assert frame.dtype == np.uint8


def test_the_last_action_tells_of_points_bonus_and_forced_zeros() -> None:
    before = {**POSITION, "cards": [{"KISMET": 65}, {"ACES": 5, "DEUCES": 10, "TREYS": 15, "FOURS": 20, "FIVES": 25}]}
    after = copy.deepcopy(before)
    after["cards"][1]["SIXES"], after["cards"][0]["ACES"] = 6, 0
    last = last_of(before, after, did="fill Sixes", kept=None, rules=Rules(), names=["Ann", "Bo"])
    assert last == ("Bo: fill Sixes, 6 points, bonus 75; Ann: 0 in Aces", (), ((1, Box.SIXES), (0, Box.ACES)))


def test_narrow_columns_call_agents_by_their_own_numbers() -> None:
    position = {**POSITION, "cards": [{}] * 4, "kismets_rolled": [0] * 4}
    names = [f"player_{seat}" for seat in range(4)]
    assert np.array_equal(
        shown(position, names=names)[174:210], shown(position, names=["P0", "P1", "P2", "P3"])[174:210]
    )


def test_names_that_the_font_cannot_write_are_told_by_seat_and_accents_are_left_out() -> None:
    last = Last("\u738b: fill Aces, 3 points; Jos\u00e9: 0 in Aces")
    frame = shown(POSITION, names=("\u738b\u82b3", "Jos\u00e9"), last=last)
    assert np.array_equal(
        frame, shown(POSITION, names=("Player 1", "Jose"), last=Last("?: fill Aces, 3 points; Jose: 0 in Aces"))
    )
    assert shows(frame, "?: fill Aces, 3 points; Jose: 0 in Aces", 17) > 0.999


@pytest.mark.parametrize("env_id", [ID, "kismet_env/KismetVersus-v0"])
def test_an_environment_draws_its_game_and_tells_the_last_action(env_id: str) -> None:
    env = gym.make(env_id, render_mode="rgb_array").unwrapped
    _, info = env.reset(seed=5)
    dice = env.position()["dice"]
    assert dice_in(env.render()) == [(COLORS[face], face) for face in dice]
    env.step(int(np.flatnonzero(info["action_mask"])[-1]))  # fills a box
    state = pickle.dumps(env.save())
    frame = env.render()
    assert np.array_equal(frame, env.render())
    assert pickle.dumps(env.save()) == state
    who, then = ("Player 1", "") if env_id == ID else ("learner", ";")  # then the opponent's entry follows
    assert shows(frame, f"{who}: fill Yarborough, {sum(dice)} points{then}", 17) > 0.999
    with pytest.raises(ValueError, match="action 225 is not one of"):
        env.step(225)
    assert np.array_equal(env.render(), frame)
    copied = pickle.loads(pickle.dumps(env))
    assert np.array_equal(copied.render(), frame)
    _, info = copied.restore(env.save())
    action = int(np.flatnonzero(info["action_mask"])[1])
    copied.step(action)
    assert shows(copied.render(), f"{who}: {actions_of('keeps').text(action)}", 17) > 0.999


def test_windows_open_show_and_close_each_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    windows = []

    def opened(*args: Any) -> Any:
        windows.append(pygame_window(*args))
        return windows[-1]

    pygame_window = pygame.Window
    monkeypatch.setattr(pygame, "Window", opened)
    env, other = gym.make(ID, render_mode="human"), gym.make(ID, render_mode="human")
    other.reset(seed=1)
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    assert env.render() is None
    other.close()
    other.close()
    env.render()
    assert len(windows) == 2
    surface = pygame.surfarray.array3d(windows[1].get_surface()).swapaxes(0, 1)
    assert dice_in(surface) == [(COLORS[face], face) for face in env.unwrapped.position()["dice"]]
    with pytest.raises(pygame.error, match="Invalid window"):
        windows[0].get_surface()
    pygame.display.quit()  # somebody else's end of all windows
    env.render()
    other.reset(seed=2)
    assert len(windows) == 4
    env.close()
    other.close()


def test_pettingzoo_draws_for_all_its_modes() -> None:
    kismet_v0 = pytest.importorskip("kismet_env.kismet_v0")
    render_test = pytest.importorskip("pettingzoo.test").render_test
    render_test(lambda render_mode=None: kismet_v0.env(num_players=3, render_mode=render_mode))


def test_a_video_can_be_read(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    env = gym.wrappers.RecordVideo(gym.make(ID, render_mode="rgb_array"), str(tmp_path / "new"), disable_logger=True)
    _, info = env.reset(seed=0)
    for _ in range(4):
        _, _, _, _, info = env.step(int(info["action_mask"].argmax()))
    env.close()
    import imageio_ffmpeg

    (file,) = (tmp_path / "new").glob("*.mp4")
    count, _ = imageio_ffmpeg.count_frames_and_secs(file)
    assert count == 5
