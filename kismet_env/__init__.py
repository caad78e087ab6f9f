"""Kismet, the dice game of the Yacht family, as a reinforcement-learning environment.

Importing the package registers its environments with Gymnasium; it compiles, solves and downloads nothing.
"""

from importlib.metadata import version

import gymnasium

from kismet_env.rules import Box, Rules, score

__version__ = version("kismet-env")
__all__ = ["Box", "Rules", "__version__", "score"]

gymnasium.register(
    id="kismet_env/Kismet-v0",
    entry_point="kismet_env.env:KismetEnv",
    vector_entry_point="kismet_env.vector_env:KismetVectorEnv",
)
gymnasium.register(
    id="kismet_env/KismetVersus-v0",
    entry_point="kismet_env.versus_env:KismetVersusEnv",
    vector_entry_point="kismet_env.versus_env:KismetVersusVectorEnv",
)
