"""Settings of the whole test run."""

import os

# The tests' networks are tiny: a second thread of torch only waits, and on a busy machine it waits with a full core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
