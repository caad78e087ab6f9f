"""Files of the .safetensors format: written whole or not at all, and checked before any of it is believed.

A file begins with the length of its header, 8 bytes. The header is JSON that says of each array what it holds and
where; texts of the writer's own stand beside. The arrays follow without a gap to the end of the file.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

_LENGTH_BYTES = 8
_MOST_HEADER = 1 << 20
_MOST_AXES = 8
_MOST_BYTES = 1 << 63
_TEXTS = "__metadata__"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
}
"""The kinds of numbers that are read here, by their names in the format."""


class DamagedFileError(ValueError):
    """A file is not what it should be."""


class Stored(NamedTuple):
    """An array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # of its first byte in the file


class Header(NamedTuple):
    """What a file says of itself."""

    texts: dict[str, str]
    arrays: dict[str, Stored]


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, str]) -> None:
    """Write `arrays` and `texts` to `path`, whose folder is made, atomically; OSError where that is not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, beside, dict(texts))
        beside.chmod(path.parent.stat().st_mode & 0o666)  # for all who share the folder, not for its writer alone
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, Exception) and not isinstance(error, OSError):
            raise OSError(str(error)) from error  # safetensors has an error of its own for a full disk
        raise


def read_header(file: BinaryIO) -> Header:
    """Return what an open file says of itself, all of it true of the file's size.

    Reads the header and nothing else. Raises DamagedFileError, in one line, for what is no file of this format.
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if not 0 < length <= min(_MOST_HEADER, size - _LENGTH_BYTES):
        raise DamagedFileError(f"no .safetensors file: a header of {length:,} bytes in a file of {size:,}")
    try:
        entries = json.loads(file.read(length))
    except (ValueError, RecursionError):
        raise DamagedFileError("the header is not JSON") from None
    if not isinstance(entries, dict):
        raise DamagedFileError("the header is not a JSON object")
    texts = entries.pop(_TEXTS, {})
    if not (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())):
        raise DamagedFileError(f"the header's {_TEXTS} are not texts")
    start = _LENGTH_BYTES + length
    extents = {name: _extent(name, entry) for name, entry in entries.items()}
    arrays, at = {}, 0
    for name, (dtype, shape, begin, end) in sorted(extents.items(), key=lambda item: item[1][2:]):
        if begin != at:
            raise DamagedFileError(f"array {short(name)} begins at byte {begin:,} instead of {at:,}")
        if end - begin != math.prod(shape) * dtype.itemsize:
            raise DamagedFileError(f"array {short(name)} of shape {short(shape)} does not have its size")
        arrays[name], at = Stored(dtype, shape, start + begin), end
    if start + at != size:
        raise DamagedFileError(f"the header tells of {start + at:,} bytes, the file has {size:,}")
    return Header(texts, arrays)


def _extent(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Return (dtype, shape, begin, end) of an entry of the header."""
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [begin, end]} if (
            len(entry) == 3 and len(shape) <= _MOST_AXES and all(map(_is_size, [*shape, begin, end]))
        ):
            if dtype not in _DTYPES:
                raise DamagedFileError(f"array {short(name)} holds {short(dtype)}, not one of {', '.join(_DTYPES)}")
            return _DTYPES[str(dtype)], tuple(shape), begin, end
    raise DamagedFileError(f"the header's entry {short(name)} describes no array")


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_BYTES


def read_array(file: BinaryIO, stored: Stored) -> npt.NDArray[Any]:
    """Return an array of an open file, read-only; DamagedFileError where the file has become shorter."""
    num_bytes = math.prod(stored.shape) * stored.dtype.itemsize
    file.seek(stored.offset)
    data = file.read(num_bytes)
    if len(data) != num_bytes:
        raise DamagedFileError("the file is cut off")
    return np.frombuffer(data, stored.dtype).reshape(stored.shape)
