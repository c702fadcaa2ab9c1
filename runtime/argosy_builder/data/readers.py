"""Readers of data files: .npz, .npy and .jsonl become columns by name, with one entry for each sample.

Nothing in NumPy's files is unpickled.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from argosy_builder.contract import Array

Columns = Mapping[str, Sequence[Any] | Array]
"""Each column's samples. The name is empty where a file has one array without a name."""


class DataError(Exception):
    """A data file is invalid. The message has the reason, without the file's name."""


def read_npz(path: Path) -> Columns:
    """Return the arrays by name, samples along the first axis. Raises DataError."""
    try:
        # Opened here, so that it is closed too where the archive cannot be read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
        raise DataError(f"is no whole .npz file without Python objects: {error}") from error
    scalars = [name for name, array in arrays.items() if not array.ndim]
    if scalars:
        raise DataError(f"{', '.join(scalars)} is one number; the first axis must count the samples")
    return arrays


def read_npy(path: Path) -> Columns:
    """Return the array, under no name. Raises DataError."""
    try:
        with path.open("rb") as file:
            array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"is no whole .npy file without Python objects: {error}") from error
    if not array.ndim:
        raise DataError("is one number; the first axis must count the samples")
    return {"": array}


def read_jsonl(path: Path) -> Columns:
    """Return a column a key, which every line must have. Empty lines are passed over. Raises DataError with the
    line.
    """
    columns: dict[str, list[Any]] = {}
    samples = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            entry = _object(line, number)
            if samples and entry.keys() != columns.keys():
                raise DataError(f"line {number} has {', '.join(entry)}, the lines before {', '.join(columns)}")
            for key, value in entry.items():
                columns.setdefault(key, []).append(value)
            samples += 1
    return columns


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(f"line {number} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"line {number} is no object; write one a sample, by the inputs' names")
    return value
