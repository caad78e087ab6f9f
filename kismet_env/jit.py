"""Compilation of the kernels: numba with an on-disk cache that no edit can make stale.

numba's own cache looks at the file a function stands in and at nothing else: after an edit of a function that it
calls, or of a constant, in another file it goes on running the old machine code. Here the cache folder is named
after a hash of every source file of the package, so that any edit starts an empty cache.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from kismet_env.cache import cache_root, forget_unused, mark_used

P = ParamSpec("P")
R = TypeVar("R")
Table = npt.NDArray[Any]
"""An array as a kernel takes it; what it holds is said where it is made."""

# Inlined, because a game is many small functions; numpy's error model, because its divisors are never 0 and the
# check for that costs as much as the division.
_OPTIONS: dict[str, Any] = {"nogil": True, "forceinline": True, "error_model": "numpy"}
_PACKAGE = Path(__file__).parent


@cache
def source_hash(pattern: str = "*.py") -> str:
    """Return a hash of the sources of the package whose names match, as 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob(pattern)):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _kernel_folder() -> str | None:
    """Return the folder for compiled code, None where it cannot be written.

    numba would then look for a folder of its own, where the code of other sources may lie.
    """
    elsewhere: str = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    folder = Path(elsewhere or cache_root() / "kernels") / source_hash()
    try:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    mark_used(folder)
    if is_new and not elsewhere:  # a folder of the user's own may hold other things
        forget_unused(folder.parent)
    return str(folder)


def _plain(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` uncompiled: records have attributes and whole numbers wrap around, as in a kernel."""

    @wraps(function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> R:
        readable: Any = [a.view(np.recarray) if isinstance(a, np.ndarray) and a.dtype.names else a for a in args]
        with np.errstate(over="ignore"):
            return function(*readable, **kwargs)

    return plain


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba on its first call, without the GIL, cached on disk where that is possible.

    On a read-only or full disk the function is compiled in every process. NUMBA_DISABLE_JIT=1 leaves it plain Python.
    """
    config: Any = numba.config
    if config.DISABLE_JIT:
        return _plain(function)
    folder, outer = _kernel_folder(), config.CACHE_DIR
    config.CACHE_DIR = folder or outer
    try:
        kernel: Callable[P, R] = numba.njit(**_OPTIONS, cache=folder is not None)(function)
    finally:
        config.CACHE_DIR = outer
    if folder is not None:
        _forgive_full_disk(kernel)
    return kernel


def _forgive_full_disk(kernel: Any) -> None:
    """Let a `kernel` be used that cannot be written to the cache: numba itself would raise the error."""
    save = kernel._cache.save_overload

    def save_where_possible(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    kernel._cache.save_overload = save_where_possible
