"""What the package keeps on disk between runs: where, and arrays that can be trusted.

An array is one .safetensors file whose header says what it is. It appears whole or not at all (written beside and
renamed), is mapped into memory instead of read, and is checked before it is used. What older versions have left, and
what nobody has asked for in a month, goes when something new is put beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from kismet_env.tensor_file import DamagedFileError, read_header, save_arrays

_NAME = "values"  # of the one array in a file
_CHECKSUM = "sha256"
_UNUSED_DAYS = 30


def cache_root() -> Path:
    """Return the folder for everything this package caches (it may not exist yet).

    The environment variable KISMET_CACHE_DIR replaces the user's cache folder.
    """
    return Path(os.environ.get("KISMET_CACHE_DIR") or platformdirs.user_cache_dir("kismet_env", appauthor=False))


def mark_used(path: Path) -> None:
    """Let `path`, a file or a folder of the cache, count as used now; nothing where it may only be read."""
    with contextlib.suppress(OSError):
        os.utime(path)


def forget_unused(folder: Path) -> None:
    """Delete the files and folders of `folder`, one of the cache, that have not been used for 30 days."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if time.time() - path.stat().st_mtime > _UNUSED_DAYS * 24 * 60 * 60:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def save_array(path: Path, array: npt.NDArray[Any], about: Mapping[str, str]) -> None:
    """Write `array` and what it is `about` to `path`, atomically; OSError where that is not possible."""
    metadata = {**about, _CHECKSUM: hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()}
    save_arrays(path, {_NAME: array}, metadata)


def load_array(path: Path, about: Mapping[str, str]) -> npt.NDArray[Any]:
    """Return the array of `path`, mapped into memory and read-only.

    Raises FileNotFoundError without the file, and DamagedFileError where it is not a whole file or not `about` the
    same.
    """
    with path.open("rb") as file:
        try:
            header = read_header(file)
        except DamagedFileError as error:
            raise DamagedFileError(f"{path}: {error}") from None
    checksum = header.texts.pop(_CHECKSUM, "")
    if header.texts != dict(about):
        raise DamagedFileError(f"{path} is about {header.texts}, not about {dict(about)}")
    if list(header.arrays) != [_NAME]:
        raise DamagedFileError(f"{path} does not hold one array of {_NAME}")
    dtype, shape, offset = header.arrays[_NAME]
    array = np.asarray(np.memmap(path, dtype, mode="r", offset=offset, shape=shape))
    if hashlib.sha256(array.data).hexdigest() != checksum:
        raise DamagedFileError(f"{path} does not have its checksum")
    return array


def kept(kind: str, about: Mapping[str, str], make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the array of this `kind` that is `about` the same from the cache, or what `make` returns, put there.

    A damaged file is made anew with a warning; where the cache cannot be written the array stays in memory, also with
    a warning. Many processes may ask at once.
    """
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    path = cache_root() / kind / f"{name}.safetensors"
    try:
        array = load_array(path, about)
        mark_used(path)
        return array
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        warnings.warn(f"{error}; solving anew", stacklevel=_WHO_ASKED)
    array = make()
    try:
        save_array(path, array, about)
        forget_unused(path.parent)
    except OSError as error:
        warnings.warn(f"cannot keep the {kind} in {path.parent}: {error}; it stays in memory", stacklevel=_WHO_ASKED)
    return array


_WHO_ASKED = 4  # calls up from here: whoever asked the module that keeps something
