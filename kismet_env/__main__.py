"""Commands for people: python -m kismet_env COMMAND."""

from __future__ import annotations

import sys
from importlib import import_module

from kismet_env.command_line import DONE, INTERRUPTED, WRONG_INPUT, run

COMMANDS = {
    "watch": "watch players play a game, with what every decision is worth",
    "analyse": "luck and regret of a recorded game, decision by decision",
    "play": "play, alone or against players, with a coach who knows what every action is worth",
    "advise": "the best actions in a position from a real table",
    "quiz": "decide about positions and hear the price of every choice",
}
"""Name and purpose; `kismet_env.commands` has a module of the same name for each, with `Config` and `main`."""


def main(argv: list[str]) -> int:
    """Run the command that `argv` names with the options behind it and return the exit code."""
    program = "python -m kismet_env"
    if not argv or argv[0] in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print(f"usage: {program} COMMAND [options]\n")
        for name, purpose in COMMANDS.items():
            print(f"  {name:{width}}  {purpose}")
        print(f"\n{program} COMMAND --help explains the options of a command.")
        return DONE if argv else WRONG_INPUT
    name, *options = argv
    if name not in COMMANDS:
        print(f"{program}: command {name!r} is unknown; commands are {', '.join(COMMANDS)}", file=sys.stderr)
        return WRONG_INPUT
    try:
        command = import_module(f"kismet_env.commands.{name}")
        return run(command.main, command.Config, options, program=f"{program} {name}")
    except KeyboardInterrupt:  # while it was imported: `run` answers for the rest
        print(f"{program} {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as missing:
        if missing.name not in ("rich", "tyro"):
            raise
        print(f"{program} needs {missing.name}; install it with pip install 'kismet-env[render]'", file=sys.stderr)
        return WRONG_INPUT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
