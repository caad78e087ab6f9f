"""Learners, one file each: a `Config`, which is the command line and the documentation, and `train(config, run)`.

Beside them is what they share: run.py, the folder and the course of a run; networks.py; regression.py. None of it is
part of the installed package; `train.py` runs them.
"""

import os

ALGORITHMS = {
    "maskable_ppo": "agents.maskable_ppo",
    "afterstate": "agents.afterstate",
    "ladder": "agents.ladder",
    "selfplay": "agents.selfplay",
    "masked_dqn": "agents.masked_dqn",
    "rllib_ppo": "agents.rllib_ppo",
}
"""Name on the command line -> module, imported when it is asked for."""

# Threads that wait for work would otherwise spin: three times slower on a machine that does anything else.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is loaded, which the learners do
