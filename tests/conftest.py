"""Settings of the whole test run."""

import os

from hypothesis import settings

# The tests' networks are tiny: a second thread of torch only waits, and on a busy machine it waits with a full core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Windows open where nobody sees them.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# The first example of a property may have to compile, which no deadline should count; else as hypothesis has it.
settings.register_profile("kismet", settings.default, deadline=None)
settings.load_profile("kismet")
