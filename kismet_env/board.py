"""A sitting on the screen of a terminal: dice and boxes to click on or to choose by keys, drawn with textual."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.theme import Theme
from textual.widgets import Button, Footer, Static

from kismet_env.actions import actions_of
from kismet_env.dice import NUM_DICE, roll_index
from kismet_env.engine import ROLLS_PER_TURN
from kismet_env.render.palette import GOLD, hex_of
from kismet_env.render.sheet import contents_of, tiers_of
from kismet_env.rules import NUM_BOXES, Box
from kismet_env.screen import advice_table, card_table, dice_lines, places_of
from kismet_env.sitting import Sitting

_KEEPS = actions_of("keeps")
_THEME = Theme(
    name="kismet",
    primary=hex_of(GOLD),
    foreground="#e6e3da",
    background="#161b1c",
    surface="#161b1c",
    panel="#1f2628",
    dark=True,
)
_WIDEST = 200  # columns of the cards
_WIDE = 84  # columns of a screen from which on there is air
_COLUMN = 8  # columns of a card beside others


class Board(App[None]):
    """Shows a sitting and takes the person's decisions.

    What Enter or a click on the button does is always written on the button: roll the dice that are not kept, or fill
    the box that is chosen.

    Args:
        sitting: whose decisions are to be taken.
        told: what has happened so far, a line each.
    """

    TITLE = "Kismet"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    AUTO_FOCUS = None
    CSS = """
    #table { height: 1fr; padding: 0 1; }
    #left { width: 1fr; min-width: 43; margin-right: 1; }
    #card { height: 1fr; overflow-x: auto; }
    #head { text-style: bold; margin-bottom: 1; }
    #act { width: 100%; margin: 1 0; background: $panel; color: $foreground; text-style: none; }
    #act:hover { background: $primary 30%; }
    #act.ready { background: $primary; color: #161b1c; text-style: bold; }
    #act.ready:hover { background: $primary 85%; }
    #advice { margin-bottom: 1; }
    #told { height: 1fr; }
    #card, #told { scrollbar-size: 1 1; scrollbar-color: #3d484b; scrollbar-background: $background; }
    .wide #left { margin-right: 3; }
    """
    BINDINGS = [  # noqa: RUF012 (textual's own form)
        Binding("1", "keep(0)", "Keep", key_display=f"1-{NUM_DICE}"),
        *(Binding(str(place + 1), f"keep({place})", show=False) for place in range(1, NUM_DICE)),
        Binding("r", "roll", "Roll"),
        Binding("down", "box(1)", "Box", key_display="\N{UPWARDS ARROW}\N{DOWNWARDS ARROW}"),
        Binding("up", "box(-1)", show=False),
        Binding("left", "scroll_cards(-1)", show=False),
        Binding("right", "scroll_cards(1)", show=False),
        Binding("enter", "act", "Do it", key_display="Enter"),
        Binding("escape", "clear", show=False),
        Binding("question_mark", "advise", "Advice", key_display="?"),
        Binding("q", "quit", "Leave"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, sitting: Sitting, told: Sequence[str] = ()) -> None:
        super().__init__()
        self._sitting = sitting
        self._past = list(told)
        self._kept: set[int] = set()  # places of dice
        self._box: Box | None = None
        self._advised = False
        self._explained: list[str] = []  # to be read before the table changes

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Horizontal(id="table"):
            with Vertical(id="left"):
                yield Static(id="head")
                yield Static(id="dice")
                yield Button("", id="act", compact=True)
                yield Static(id="advice")
                with VerticalScroll(id="told", can_focus=False):
                    yield Static(id="past")
            with VerticalScroll(id="card", can_focus=False):
                yield Static()
        yield Footer()

    def on_mount(self) -> None:
        """Show the table."""
        self.register_theme(_THEME)
        self.theme = _THEME.name
        self.query_one(Button).can_focus = False  # Enter is the board's own
        self._begin_decision()

    def on_resize(self, event: events.Resize) -> None:
        """Give the cards the room that the dice leave."""
        wide = event.size.width >= _WIDE
        self.set_class(wide, "wide")
        self.query_one("#card").styles.max_width = max(1, event.size.width - (48 if wide else 46))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done now."""
        if action in ("keep", "roll"):
            return self._can_roll
        return self._decides if action in ("box", "advise", "clear") else True

    # What the person does

    def action_keep(self, place: int) -> None:
        """Keep a die, or take it up again."""
        if self._can_roll:
            self._kept ^= {place}
            self._box = None
            self._show()

    def action_clear(self) -> None:
        """Choose no box."""
        self._box = None
        self._show()

    def action_box(self, step: int) -> None:
        """Choose the next box that can be filled."""
        boxes = [box for box in Box if self._may_fill(box)]
        if boxes:
            now = boxes.index(self._box) if self._box in boxes else (-1 if step > 0 else 0)
            self._box = boxes[(now + step) % len(boxes)]
            self._show()

    def action_roll(self) -> None:
        """Roll the dice that are not kept."""
        self._box = None
        if self._can_roll:
            self.action_act()

    def action_advise(self) -> None:
        """Show the best actions, or hide them."""
        self._advised = not self._advised
        self._show()

    def action_act(self) -> None:
        """Do what the button says."""
        if self._explained:
            self._explained = []
            self._begin_decision()
        elif self._sitting.over:
            self.exit()
        elif (action := self._chosen) is not None:
            dice = self._sitting.position()["dice"]
            kept = [dice[place] for place in sorted(self._kept)] if self._box is None else []
            told = self._sitting.choose(action)
            if self._sitting.explains:
                self._explained = told
                self._show(stay=True)
            else:
                self._past += told
                self._begin_decision(kept)

    def action_scroll_cards(self, step: int) -> None:
        """Move along the cards, where there are more than the screen holds."""
        self.query_one("#card").scroll_relative(x=_COLUMN * step, animate=False)

    def on_button_pressed(self) -> None:
        """Do what the button says."""
        self.action_act()

    def on_click(self, event: events.Click) -> None:
        """Keep the die or choose the box under the mouse."""
        about = event.style.meta
        if "die" in about:
            self.action_keep(about["die"])
        elif "box" in about and self._may_fill(Box(about["box"])):
            self._box = None if self._box == about["box"] else Box(about["box"])
            self._show()

    # What is on the table

    @property
    def _decides(self) -> bool:
        return not self._sitting.over and not self._explained

    @property
    def _can_roll(self) -> bool:
        return self._decides and self._sitting.position()["rolls_left"] > 0

    def _may_fill(self, box: Box) -> bool:
        return self._decides and bool(self._sitting.legal[_KEEPS.box_action(box)])

    @property
    def _chosen(self) -> int | None:
        """The action that the person has put together, if it is one."""
        position = self._sitting.position()
        if self._box is not None:
            return _KEEPS.box_action(self._box)
        if not position["rolls_left"] or len(self._kept) == NUM_DICE:
            return None
        return _KEEPS.keep_action(roll_index(position["dice"]), [position["dice"][place] for place in self._kept])

    def _begin_decision(self, kept: Sequence[int] = ()) -> None:
        """Show the table as it is now, with the faces `kept` still kept."""
        self._box, self._advised = None, False
        self._kept = set(places_of(kept, self._sitting.position()["dice"])) if self._can_roll else set()
        self._show()

    def _show(self, *, stay: bool = False) -> None:
        """Draw everything anew; with `stay`, the button and what was explained alone."""
        button, advice = self.query_one("#act", Button), self.query_one("#advice", Static)
        button.label, ready = self._label()
        button.set_class(ready, "ready")
        self.refresh_bindings()
        if stay:
            advice.update(Text("\n".join(self._explained)))
            advice.display = True
            return
        sitting, position = self._sitting, self._sitting.position()
        self.query_one("#head", Static).update(self._head())
        dice = dice_lines(position["dice"], self._kept, mark="keep", numbered=self._can_roll)
        self.query_one("#dice", Static).update(dice)
        self.query_one("#dice").display = not sitting.over
        advice.update(self._advice() if self._advised else "")
        advice.display = self._advised
        past = sitting.report() if sitting.over else self._past
        self.query_one("#past", Static).update(Text("\n".join(past), "" if sitting.over else "dim"))
        if not sitting.over:
            self.query_one("#told").scroll_end(animate=False)
        card = card_table(position, sitting.rules, sitting.players, chosen=self._box)
        width = Measurement.get(self.console, self.console.options.update_width(_WIDEST), card).maximum
        self.query_one("#card").styles.width = width
        self.query_one("#card Static", Static).update(card)
        self.query_one("#card Static", Static).styles.width = width

    def _head(self) -> Text:
        """Return where one is."""
        sitting, position = self._sitting, self._sitting.position()
        title = sitting.title()
        if sitting.over:
            return Text("The end" if sitting.explains else "The game is over")
        own = contents_of(position, sitting.rules).columns[sitting.seat]
        roll = ROLLS_PER_TURN - position["rolls_left"]
        head = Text(f"Turn {len(own.card) + 1} of {NUM_BOXES} · roll {roll} of {ROLLS_PER_TURN}")
        if title:
            head.append(f"\n{title}", "not bold")
        if own.bonus is None:
            head.append(f"\nBasic {own.basic_total} · bonus {tiers_of(sitting.rules)}", "not bold dim")
        return head

    def _label(self) -> tuple[str, bool]:
        """Return what the button says, and whether it can be done."""
        if self._explained:
            return "Go on", True
        if self._sitting.over:
            return "Leave", True
        position = self._sitting.position()
        if self._box is not None:
            points = contents_of(position, self._sitting.rules).offers[self._box]
            return f"Fill {self._box.title}: {points} point{'s' * (points != 1)}", True
        if not position["rolls_left"]:
            return "Choose a box to fill", False
        rolled = NUM_DICE - len(self._kept)
        if not rolled:
            return "Keep fewer dice, or choose a box", False
        return ("Roll all dice" if rolled == NUM_DICE else f"Roll {rolled} {'die' if rolled == 1 else 'dice'}"), True

    def _advice(self) -> RenderableType:
        """Return the best actions."""
        advice = advice_table(self._sitting.advice())
        return Group(advice, Text(self._sitting.caveat, "dim")) if self._sitting.caveat else advice
