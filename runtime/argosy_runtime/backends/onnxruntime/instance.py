"""One ONNX Runtime session that answers batches."""

import ctypes
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import onnxruntime as ort

from argosy_runtime.backends.batching import Batcher
from argosy_runtime.backends.contract import ExecutionTimes, InstanceSpec, Responder
from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array, InferRequest

from . import options
from .session import explained, signature
from .signature import BFLOAT16, Signature

_ONNX_BFLOAT16 = 16  # TensorProto.BFLOAT16, which numpy has no number for


class OnnxInstance:
    """A loaded model."""

    def __init__(self, spec: InstanceSpec, session: ort.InferenceSession) -> None:
        self._session: ort.InferenceSession | None = session
        self._run_options = options.run_options(spec.config)
        self._signature = signature(session)
        self._name = spec.config.name
        self._batcher = Batcher(spec.config, spec.version, self._run)
        self._has_bfloat16 = _has_bfloat16(self._signature)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join, run once, split."""
        return self._batcher.execute(requests, responder)

    def close(self) -> None:
        """Release the session and its memory."""
        self._session = None

    def _run(self, inputs: Mapping[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        if self._session is None:
            raise internal(f"model '{self._name}' is unloaded")
        feed = {name: self._to_ort(name, array) for name, array in inputs.items()}
        try:
            run = self._run_values if self._has_bfloat16 else self._session.run
            outputs = run(list(wanted), feed, self._run_options)
        except Exception as error:
            raise internal(explained(error)) from error
        return {name: _from_ort(output) for name, output in zip(wanted, outputs, strict=True)}

    def _to_ort(self, name: str, array: Array) -> Array:
        info = self._signature.inputs.get(name) or self._signature.overridable.get(name)
        if info is not None and not info.shape and array.size == 1:
            array = array.reshape(())
        if array.dtype == np.object_:
            return _texts(self._name, name, array)
        return array

    def _run_values(
        self, wanted: list[str], feed: Mapping[str, Array], run_options: ort.RunOptions | None
    ) -> list[Array]:
        """Like `session.run`, for models with BF16 tensors, which numpy knows only through ml_dtypes."""
        assert self._session is not None
        values = {name: _value_of(array) for name, array in feed.items()}
        return [_array_of(value) for value in self._session.run_with_ort_values(wanted, values, run_options)]


def _has_bfloat16(found: Signature) -> bool:
    return any(
        info.datatype == BFLOAT16 for side in (found.inputs, found.outputs, found.overridable) for info in side.values()
    )


def _texts(model: str, name: str, array: Array) -> Array:
    """ONNX strings are text, V2's BYTES are bytes: decoded as UTF-8."""
    texts = np.empty(array.size, dtype=np.object_)
    try:
        texts[:] = [item.decode("utf-8") for item in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise invalid(f"model '{model}', input '{name}': ONNX strings must be UTF-8: {error}") from error
    return texts.reshape(array.shape)


def _from_ort(array: Array) -> Array:
    if array.dtype != np.object_:
        return array
    encoded = np.empty(array.size, dtype=np.object_)
    encoded[:] = [str(item).encode("utf-8") for item in array.ravel().tolist()]
    return encoded.reshape(array.shape)


def _value_of(array: Array) -> ort.OrtValue:
    if array.dtype == ml_dtypes.bfloat16:
        bits = np.ascontiguousarray(array).view(np.uint16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _ONNX_BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def _array_of(value: ort.OrtValue) -> Array:
    if value.element_type() != _ONNX_BFLOAT16:
        array: Array = value.numpy()
        return array
    shape = tuple(value.shape())
    count = int(np.prod(shape))
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), 2 * count), np.uint16)
    values: Array = bits.view(ml_dtypes.bfloat16)
    return values.reshape(shape)
