"""Running an ONNX file, for the gate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import Array, BuildError
from argosy_runtime.backends.onnxruntime import values

from .files import model_file
from .sessions import first_line_of, opened
from .settings import settings_of


class OnnxRunner:
    """An ONNX file, opened as the server opens it, with every optimization."""

    def __init__(self, folder: Path, request: BuildRequest) -> None:
        self._path = model_file(folder, request.filename)
        self._session: Any = opened(self._path, settings_of(request).providers)
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name. Raises BuildError."""
        try:
            tensors = {name: _value(name, array) for name, array in inputs.items()}
            outputs = self._session.run_with_ort_values(self._outputs, tensors)
        except Exception as error:
            raise BuildError(
                BuildFailure.ACCURACY_DATA_INVALID,
                f"spec.engine.accuracy.dataUri: {self._path.name} does not take this sample: "
                f"{first_line_of(error)}; correct spec.inputs or the data",
            ) from error
        return {name: values.array_of(value) for name, value in zip(self._outputs, outputs, strict=True)}


def _value(name: str, array: Array) -> ort.OrtValue:
    if array.dtype.kind in "SO":
        return ort.OrtValue.ortvalue_from_numpy(values.to_texts("model", name, _as_bytes(array)))
    if array.dtype.kind == "U":
        return ort.OrtValue.ortvalue_from_numpy(array.astype(np.object_))
    return values.value_of(np.ascontiguousarray(array))


def _as_bytes(array: Array) -> Array:
    encoded = np.empty(array.size, np.object_)
    encoded[:] = [text.encode() if isinstance(text, str) else bytes(text) for text in array.ravel().tolist()]
    return encoded.reshape(array.shape)
