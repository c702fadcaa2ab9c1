"""NumPy's files: .npz with an array a tensor, .npy with one array. Nothing in them is unpickled."""

import zipfile
from pathlib import Path

import numpy as np

from .table import Columns, DataError


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
