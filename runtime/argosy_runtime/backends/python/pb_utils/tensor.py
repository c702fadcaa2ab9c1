"""`pb_utils.Tensor`: a named numpy array that other frameworks can look at through DLPack."""

import importlib
from typing import Any

import numpy as np

from argosy_runtime import messages
from argosy_runtime.messages import Array
from argosy_runtime.modelconfig import numpy_dtype
from argosy_runtime.tensors import string_array, string_elements

from . import arguments, context, datatypes
from .errors import TritonModelException

_CPU_DEVICES = (1, 3, 11, 13)  # kDLCPU, and host memory that CUDA or ROCm has pinned or manages
_BF16 = 14


class Tensor:
    """A tensor a model reads or answers with.

    `numpy_array` keeps its shape; the batch comes first where there is one.
    """

    __slots__ = ("_array", "_message", "_name", "_number")

    def __init__(self, name: str, numpy_array: Array) -> None:
        name = arguments.text("name", name)
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        if not isinstance(numpy_array, np.ndarray):
            raise TypeError(f"numpy_array must be a numpy.ndarray, not {type(numpy_array).__name__}")
        array = np.asarray(numpy_array)
        number = datatypes.numpy_to_triton_type(array.dtype)
        if number is None:
            raise TritonModelException(
                f"NumPy dtype is not supported. Tensor '{name}' has dtype '{array.dtype}'; "
                "strings must be an object array of bytes or str."
            )
        self._name = name
        self._number = number
        self._array: Array | None = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        self._message: messages.Tensor | None = None

    def name(self) -> str:
        """Return the tensor's name in the model's configuration."""
        return self._name

    def as_numpy(self) -> Array:
        """Return the data, the model's own. BYTES are an object array of bytes, BF16 is `ml_dtypes.bfloat16`."""
        array = self._array
        if array is None:
            assert self._message is not None
            array = self._message.array
            if not context.current().alone:
                array = array.copy()  # others of this process read it too
            self._array = array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        return array

    def triton_dtype(self) -> int:
        """Return the TRITONSERVER_DataType number."""
        return self._number

    def shape(self) -> list[int]:
        """Return the dimensions."""
        return list(self._message.shape if self._message is not None else self.as_numpy().shape)

    def nbytes(self) -> int:
        """Return bytes that it takes."""
        return self._message.nbytes if self._message is not None else self.as_numpy().nbytes

    def is_cpu(self) -> bool:
        """Return True: tensors travel through host memory."""
        return True

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule over the same memory. Raises TritonModelException for BYTES."""
        return self.__dlpack__()

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        array = self.as_numpy()
        if array.dtype == np.object_ or array.dtype.kind == "S":
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._number == _BF16:
            torch = importlib.import_module("torch")
            bits = torch.from_numpy(_writable(array.view(np.int16)))
            return bits.view(torch.bfloat16).__dlpack__()
        exported: Any = _writable(array)
        return exported.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """Return a tensor over what `tensor` holds: a capsule, or anything with `__dlpack__`; GPU memory is copied
        to the host.
        """
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        return Tensor(name, _array_of(tensor))


class ReceivedTensor(Tensor):
    """A tensor from the server, decoded at its first use."""

    def __init__(self, message: messages.Tensor) -> None:
        # Without the base's checks: the server has made them.
        self._name = message.name
        self._number = datatypes.NUMBERS[message.datatype]
        self._array = None
        self._message = message


def from_message(message: messages.Tensor) -> Tensor:
    """Return a request's tensor, as a model sees it."""
    return ReceivedTensor(message)


def to_message(tensor: Tensor, later: bool = False) -> messages.Tensor:
    """Return a model's tensor, as the server sees it: BYTES become an object array of bytes.

    The array is copied where the model could write to it before all of it is sent: in a process with other models,
    and where it is sent `later`.
    """
    message = tensor._message
    if message is not None and _is_untouched(tensor):
        return message
    array = tensor.as_numpy()
    datatype = datatypes.wire_name(tensor.triton_dtype())
    if datatype == "BYTES":
        array = string_array(string_elements(array), array.shape)
    elif later or not context.current().alone:
        array = array.copy()
    return messages.Tensor(tensor.name(), datatype, array)


def _is_untouched(tensor: Tensor) -> bool:
    """Return whether it can still be what the request carried: a model may have written to the array it has seen."""
    return tensor._array is None or not tensor._array.flags.writeable


def _writable(array: Array) -> Array:
    """Return a writable array: DLPack has no read-only memory, so numpy refuses to export it."""
    return array if array.flags.writeable else array.copy()


class _Capsule:
    """A bare capsule with the two methods numpy asks for."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _array_of(tensor: Any) -> Array:
    if type(tensor).__name__ == "PyCapsule":
        return np.from_dlpack(_Capsule(tensor))
    if not (hasattr(tensor, "__dlpack__") and hasattr(tensor, "__dlpack_device__")):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule         "
            "or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    device, _ = tensor.__dlpack_device__()
    if device not in _CPU_DEVICES:
        tensor = _on_host(tensor)
    if str(getattr(tensor, "dtype", "")) == "torch.bfloat16":
        int16 = importlib.import_module("torch").int16
        return np.from_dlpack(tensor.view(int16)).view(numpy_dtype("BF16"))
    return np.from_dlpack(tensor)


def _on_host(tensor: Any) -> Any:
    if not hasattr(tensor, "cpu"):
        raise TritonModelException("The tensor lies in GPU memory; copy it to the host first.")
    return tensor.cpu()
