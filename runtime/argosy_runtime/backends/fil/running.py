"""One run of a forest on the host: rows of numbers in, classes, probabilities or values out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np
from treelite import gtil

from argosy_runtime.backends.batching import Output
from argosy_runtime.cpus import cpu_limit
from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.tensors.device_arrays import DeviceArray

from .forest import Forest, explained
from .settings import Settings
from .validation import INPUT, OUTPUT

_NO_CONTEXT: Final = nullcontext()
_ALL: Final = -1
_ALONE: Final = 64
"""Rows that one thread answers sooner than several, which have to be woken."""


class ForestFramework:
    """A `Framework` of a forest; `columns` is the shape of a row's answer."""

    def __init__(self, name: str, forest: Forest, settings: Settings, columns: tuple[int, ...]) -> None:
        self._name = name
        self._forest = forest
        self._settings = settings
        self._columns = columns
        self._threads = _possible(settings.threads if settings.threads > 0 else cpu_limit() or _ALL, forest)

    def batch(self) -> AbstractContextManager[None]:
        return _NO_CONTEXT

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Array:
        arrays = [tensor.array for tensor in tensors]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def run(self, inputs: Mapping[str, Array], requested: Sequence[str]) -> Mapping[str, Output]:
        """Return the answers. Treelite reads what is behind a row that is too short, so rows are checked first."""
        rows = inputs[INPUT]
        if rows.shape[1] != self._forest.features:
            raise invalid(
                f"model '{self._name}', input '{INPUT}': the model has {self._forest.features} features, "
                f"and the request has rows of {rows.shape[1]}"
            )
        threads = 1 if len(rows) <= _ALONE and self._settings.threads <= 0 else self._threads
        try:
            scores = gtil.predict(self._forest.model, rows, nthread=threads)
        except Exception as error:
            raise internal(f"model '{self._name}': {explained(error)}") from error
        answers = self._answers(scores.reshape(len(rows), self._forest.classes))
        return {OUTPUT: answers.astype(np.float32, copy=False).reshape(len(rows), *self._columns)}

    def _answers(self, scores: Array) -> Array:
        """Return what the settings ask for of the model's own values, [rows, classes]."""
        if self._settings.answers_classes:
            return (
                np.argmax(scores, axis=1) if self._forest.classes > 1 else np.greater(scores, self._settings.threshold)
            )
        if self._columns == (2,) and self._forest.classes == 1:
            return np.concatenate([1 - scores, scores], axis=1)
        return scores

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs, which are on the host already."""
        return {name: output for name, output in outputs.items() if not isinstance(output, DeviceArray)}


def _possible(threads: int, forest: Forest) -> int:
    """Return a number of threads, or all where OpenMP has fewer: Treelite refuses to compute with more than it has."""
    if threads > 1:
        try:
            gtil.predict(forest.model, np.zeros((1, forest.features), np.float32), nthread=threads)
        except Exception:
            return _ALL
    return threads
