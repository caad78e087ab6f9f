"""What the package keeps on disk between runs: where, and arrays that can be trusted.

An array is one .safetensors file whose header says what it is. It appears whole or not at all (written beside and
renamed), is mapped into memory instead of read, and is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs
from safetensors.numpy import save_file

_NAME = "values"  # of the one array in a file
_CHECKSUM = "sha256"
_LENGTH_BYTES = 8  # a .safetensors file begins with the length of its header
_MOST_HEADER = 1 << 20


class DamagedFileError(ValueError):
    """A file of the cache is not what it should be."""


def cache_root() -> Path:
    """Return the folder for everything this package caches (it may not exist yet).

    The environment variable KISMET_CACHE_DIR replaces the user's cache folder.
    """
    return Path(os.environ.get("KISMET_CACHE_DIR") or platformdirs.user_cache_dir("kismet_env", appauthor=False))


def save_array(path: Path, array: npt.NDArray[Any], about: Mapping[str, str]) -> None:
    """Write `array` and what it is `about` to `path`, atomically; OSError where that is not possible."""
    metadata = {**about, _CHECKSUM: hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        save_file({_NAME: array}, beside, metadata)
        beside.chmod(path.parent.stat().st_mode & 0o666)  # for all who share the folder, not for its writer alone
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, Exception) and not isinstance(error, OSError):
            raise OSError(str(error)) from error  # safetensors has an error of its own for a full disk
        raise


def load_array(path: Path, about: Mapping[str, str]) -> npt.NDArray[Any]:
    """Return the array of `path`, mapped into memory and read-only.

    Raises FileNotFoundError without the file, and DamagedFileError where it is not a whole file or not `about` the
    same.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if not 0 < length <= min(_MOST_HEADER, size - _LENGTH_BYTES):
            raise DamagedFileError(f"{path} is not a .safetensors file")
        try:
            header = json.loads(file.read(length))
            entry, metadata = header[_NAME], dict(header["__metadata__"])
            dtype, (count,) = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"]
            begin, end = entry["data_offsets"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedFileError(f"{path} has no header of an array") from error
    checksum = metadata.pop(_CHECKSUM, "")
    if metadata != dict(about):
        raise DamagedFileError(f"{path} is about {metadata}, not about {dict(about)}")
    offset = _LENGTH_BYTES + length
    if begin != 0 or end != count * dtype.itemsize or offset + end != size:
        raise DamagedFileError(f"{path} is cut off or holds too much")
    array = np.asarray(np.memmap(path, dtype, mode="r", offset=offset, shape=(count,)))
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
        return load_array(path, about)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        warnings.warn(f"{error}; solving anew", stacklevel=_WHO_ASKED)
    array = make()
    try:
        save_array(path, array, about)
    except OSError as error:
        warnings.warn(f"cannot keep the {kind} in {path.parent}: {error}; it stays in memory", stacklevel=_WHO_ASKED)
    return array


_WHO_ASKED = 4  # calls up from here: whoever asked the module that keeps something
_DTYPES = {"F64": np.float64, "U8": np.uint8, "U16": np.uint16}
