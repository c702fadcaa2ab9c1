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

_NOTHING_AROUND: Final = nullcontext()


class HostFramework:
    """See `Framework`."""

    def __init__(
        self, name: str, session: ort.InferenceSession, found: Signature, run_options: ort.RunOptions | None
    ) -> None:
        self._name = name
        self._session = session
        self._signature = found
        self._run_options = run_options
        self._has_bfloat16 = any(
            info.datatype == BFLOAT16
            for side in (found.inputs, found.outputs, found.overridable)
            for info in side.values()
        )

    def batch(self) -> AbstractContextManager[None]:
        """See `Framework`."""
        return _NOTHING_AROUND

    def gather(self, name: str, tensors: Sequence[Tensor]) -> Array:
        """See `Framework`."""
        arrays = [tensor.array for tensor in tensors]
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        if array.size == 1 and self._signature.is_scalar(name):
            array = array.reshape(())
        return values.to_texts(self._name, name, array) if array.dtype == np.object_ else array

    def run(self, inputs: Mapping[str, Array], wanted: Sequence[str]) -> Mapping[str, Output]:
        """See `Framework`."""
        run = self._run_values if self._has_bfloat16 else self._session.run
        try:
            outputs = run(list(wanted), inputs, self._run_options)
        except Exception as error:
            raise internal(explained(error)) from error
        return {name: values.from_ort(output) for name, output in zip(wanted, outputs, strict=True)}

    def _run_values(
        self, wanted: list[str], feed: Mapping[str, Array], run_options: ort.RunOptions | None
    ) -> list[Array]:
        """Like `session.run`, for models with BF16 tensors, which numpy knows only through ml_dtypes."""
        given = {name: values.value_of(array) for name, array in feed.items()}
        return [values.array_of(value) for value in self._session.run_with_ort_values(wanted, given, run_options)]

    def fetch(self, outputs: Mapping[str, Output]) -> Mapping[str, Array]:
        """See `Framework`: they are there."""
        return {name: output for name, output in outputs.items() if not isinstance(output, DeviceArray)}
