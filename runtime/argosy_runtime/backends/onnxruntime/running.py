"""One run on the host: numpy in, numpy out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np
import onnxruntime as ort

from argosy_runtime.backends.batching import Output
from argosy_runtime.errors import internal
from argosy_runtime.messages import Array, Tensor
from argosy_runtime.tensors.device_arrays import DeviceArray

from . import values
from .session import explained
from .signature import BFLOAT16, Signature

_NO_CONTEXT: Final = nullcontext()


class HostFramework:
    """A `Framework` on the host."""

    def __init__(
        self, name: str, session: ort.InferenceSession, signature: Signature, run_options: ort.RunOptions | None
    ) -> None:
        self._name = name
        self._session = session
        self._signature = signature
        self._run_options = run_options
        self._has_bfloat16 = any(
            info.datatype == BFLOAT16
            for side in (signature.inputs, signature.outputs, signature.overridable)
            for info in side.values()
        )

    def batch(self) -> AbstractContextManager[None]:
        return _NO_CONTEXT

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Array:
        arrays = [tensor.array for tensor in tensors]
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        if array.size == 1 and self._signature.is_scalar(name):
            array = array.reshape(())
        return values.to_texts(self._name, name, array) if array.dtype == np.object_ else array

    def run(self, inputs: Mapping[str, Array], requested: Sequence[str]) -> Mapping[str, Output]:
        run = self._run_values if self._has_bfloat16 else self._session.run
        try:
            outputs = run(list(requested), inputs, self._run_options)
        except Exception as error:
            raise internal(explained(error)) from error
        return {name: values.from_ort(output) for name, output in zip(requested, outputs, strict=True)}

    def _run_values(
        self, requested: list[str], feed: Mapping[str, Array], run_options: ort.RunOptions | None
    ) -> list[Array]:
        """Run like `session.run`, for models with BF16 tensors, which numpy has only through ml_dtypes."""
        inputs = {name: values.value_of(array) for name, array in feed.items()}
        return [values.array_of(value) for value in self._session.run_with_ort_values(requested, inputs, run_options)]

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """Return the outputs that are on the host already."""
        return {name: output for name, output in outputs.items() if not isinstance(output, DeviceArray)}
