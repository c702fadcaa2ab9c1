"""A folder of data becomes samples that fit a model's inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_agent.transfer.localfiles import digest_of
from argosy_builder.contract import Array, BuildError
from argosy_runtime.modelconfig.datatypes import TABLE

from .readers import Columns, DataError, read_jsonl, read_npy, read_npz

LABELS = "labels"
"""The column of the right answers, where data has some and no input is called so."""
TEXT = "text"
"""The column of whole texts, for language models."""

_READERS: Mapping[str, Callable[[Path], Columns]] = {".npz": read_npz, ".npy": read_npy, ".jsonl": read_jsonl}


class Purpose(Enum):
    """What data is for: the field that errors name, and how a build fails without it."""

    CALIBRATION = ("spec.engine.calibration.dataUri", BuildFailure.CALIBRATION_INVALID)
    ACCURACY = ("spec.engine.accuracy.dataUri", BuildFailure.ACCURACY_DATA_INVALID)

    @property
    def field(self) -> str:
        """The field that names the data."""
        return self.value[0]

    def error(self, message: str) -> BuildError:
        """Return what is raised where the data will not do."""
        return BuildError(self.value[1], f"{self.field}: {message}")


@dataclass(frozen=True, slots=True)
class Samples:
    """Inputs of one request each, without the batch axis; their right answers and texts, where the data has them.

    `digest` is of the files that they came from.
    """

    rows: Sequence[Mapping[str, Array]]
    digest: str
    labels: Array | None = None
    texts: Sequence[str] = field(default=())

    def __len__(self) -> int:
        return len(self.rows) or len(self.texts)


def read_samples(folder: Path, inputs: Sequence[TensorSpec], count: int, purpose: Purpose) -> Samples:
    """Return the first `count` samples (0: all) of the data files below `folder`, by name, in the form of `inputs`.

    A file is .npz (an array a tensor), .npy (the only input) or .jsonl (an object a sample); the first axis counts the
    samples. Without `inputs` every column but labels is one. Raises BuildError that names the file and what is wrong.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in _READERS)
    if not files:
        there = ", ".join(sorted({path.name for path in folder.rglob("*") if path.is_file()})[:5]) or "nothing"
        raise purpose.error(f"holds no .npz, .npy or .jsonl file, but {there}")
    parts = [_read(path, inputs, purpose) for path in files]
    rows = [row for part in parts for row in part.rows]
    texts = [text for part in parts for text in part.texts]
    labelled = [part.labels for part in parts if part.labels is not None]
    if len(labelled) not in (0, len(parts)):
        raise purpose.error("some files have labels and some have none; give all of them labels")
    limit = count or max(len(rows), len(texts))
    labels = np.concatenate(labelled)[:limit] if labelled else None
    samples = Samples(tuple(rows[:limit]), digest_of(folder), labels, tuple(texts[:limit]))
    if not len(samples):
        raise purpose.error("holds no sample")
    return samples


def _read(path: Path, inputs: Sequence[TensorSpec], purpose: Purpose) -> Samples:
    try:
        columns = _READERS[path.suffix](path)
        return _fitted(columns, inputs)
    except DataError as error:
        raise purpose.error(f"{path.name}: {error}") from error
    except (OSError, ValueError, EOFError) as error:
        raise purpose.error(f"{path.name} cannot be read: {error}") from error


def _fitted(columns: Columns, inputs: Sequence[TensorSpec]) -> Samples:
    named = {spec.name for spec in inputs}
    if len(named) == 1 and set(columns) == {""}:  # a bare array is the only input
        columns = {next(iter(named)): columns[""]}
    texts = [str(spec) for spec in columns[TEXT]] if TEXT in columns and TEXT not in named else []
    labels = np.asarray(columns[LABELS]) if LABELS in columns and LABELS not in named else None
    if texts and not named & set(columns):
        return Samples((), "", labels, texts)
    specs = list(inputs) or [TensorSpec(name, "") for name in columns if name not in (LABELS, TEXT)]
    missing = [spec.name for spec in specs if spec.name not in columns]
    if missing:
        raise DataError(f"has no {', '.join(missing)}; it has {', '.join(columns) or 'nothing'}")
    fitted = {spec.name: [_one(value, spec, at) for at, value in enumerate(columns[spec.name])] for spec in specs}
    lengths = {name: len(values) for name, values in fitted.items()} | ({} if labels is None else {LABELS: len(labels)})
    if len(set(lengths.values())) > 1:
        raise DataError(f"has not as many samples of each: {', '.join(f'{n} of {k}' for k, n in lengths.items())}")
    rows = [dict(zip(fitted, values, strict=True)) for values in zip(*fitted.values(), strict=True)]
    return Samples(rows, "", labels, texts)


def _one(value: object, spec: TensorSpec, at: int) -> Array:
    """Return one sample of one input. Raises DataError where type or shape are others."""
    array = np.asarray(value)
    dtype = _DTYPES.get(spec.data_type)
    if dtype is not None and array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind") and not _is_integral(array, dtype):
            raise DataError(f"{spec.name}[{at}] is {array.dtype}, which is no {spec.data_type}")
        array = array.astype(dtype)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(f"{spec.name}[{at}] holds what is no finite number")
    if spec.data_type and not _has_shape(array, spec.dims):
        raise DataError(f"{spec.name}[{at}] has the shape {list(array.shape)}, and dims are {list(spec.dims)}")
    return array


def _is_integral(array: Array, dtype: "np.dtype[np.generic]") -> bool:
    """Return whether JSON's numbers, which have no width, fit an integer type without loss."""
    if array.dtype.kind not in "iu" or dtype.kind not in "iu" or not array.size:
        return False
    bounds = np.iinfo(dtype.name)
    return bool(array.min() >= bounds.min and array.max() <= bounds.max)


def _has_shape(array: Array, dims: Sequence[int]) -> bool:
    return array.ndim == len(dims) and all(dim in (-1, size) for dim, size in zip(dims, array.shape, strict=True))


_DTYPES = {row.config_name: np.dtype(row.numpy_name) for row in TABLE if row.v2 not in ("BF16", "BYTES")}
