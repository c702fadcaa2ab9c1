"""A named tensor in two representations, numpy's and the wire's: each is made from the other when it is first read.

The bytes of the wire are those of the binary extension and of raw gRPC contents: little-endian elements in C order. A
tensor that only passes through is never decoded.
"""

from math import prod

import numpy as np

from argosy_runtime.modelconfig.datatypes import element_size, numpy_dtype

from .device_arrays import DeviceArray
from .strings import Array, Data, join_strings, split_strings, string_array, string_elements

# Below this many bytes a copy is cheaper than a view.
_COPY_BELOW = 4096


class TensorSpec:
    """A tensor without its data. `size` is in bytes; -1 for BYTES, whose elements differ in size.

    `shape` has the batch first where there is one.
    """

    __slots__ = ("datatype", "name", "shape", "size")

    def __init__(self, name: str, datatype: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.datatype = datatype
        self.shape = shape
        self.size = byte_size(datatype, shape)

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """A key that is equal for equal specs."""
        return (self.name, self.datatype, self.shape)

    def __repr__(self) -> str:
        return f"TensorSpec({self.name!r}, {self.datatype!r}, {self.shape!r})"


class Tensor:
    """A named array. `datatype` is its V2 name: BOOL, INT64, FP32, BYTES, BF16 …

    Arrays are numpy; BYTES tensors are object arrays of `bytes`, BF16 uses `ml_dtypes.bfloat16`. `device` is set
    for a tensor in a device's memory, which is copied to the host when `array` or `data` is read.
    """

    __slots__ = ("_array", "_data", "datatype", "device", "name", "shape")

    def __init__(self, name: str, datatype: str, array: Array) -> None:
        self.name = name
        self.datatype = datatype
        self.shape: tuple[int, ...] = array.shape
        self._array: Array | None = array
        self._data: Data | None = None
        self.device: DeviceArray | None = None

    @property
    def array(self) -> Array:
        """The data as an array: over the bytes it came as, where these are aligned for their type."""
        array = self._array
        if array is None:
            array = self._array = self._read()
        return array

    def _read(self) -> Array:
        if self.device is not None:
            return self.device.host()
        assert self._data is not None
        return _decoded(self.datatype, self.shape, self._data)

    @property
    def data(self) -> Data:
        """The data as the wire has it; a view of the array where that is large and not BYTES."""
        data = self._data
        if data is None:
            data = self._data = _encoded(self.datatype, self.array)
        return data

    @property
    def raw(self) -> Data | None:
        """The data as the wire has it, None where it would have to be encoded first."""
        return self._data

    @property
    def nbytes(self) -> int:
        """The size of the data in bytes, 0 for BYTES on a device."""
        if self._data is not None:
            return len(self._data)
        return self._array.nbytes if self._array is not None else max(0, byte_size(self.datatype, self.shape))

    def protect(self) -> None:
        """Make the data read-only, because several models get it: those that write take a copy."""
        if self._array is not None:
            self._array.flags.writeable = False
        if isinstance(self._data, memoryview):
            self._data = self._data.toreadonly()

    def spec(self) -> TensorSpec:
        """Return the tensor without its data."""
        return TensorSpec(self.name, self.datatype, self.shape)

    def renamed(self, name: str) -> "Tensor":
        """Return the same data under another name, without a copy; ensembles pass tensors on by it."""
        if name == self.name:
            return self
        other = raw_tensor(name, self.datatype, self.shape, b"")
        other._array, other._data, other.device = self._array, self._data, self.device
        return other

    def reshaped(self, shape: tuple[int, ...]) -> "Tensor":
        """Return the same data in another shape, without a copy. Raises ValueError where it does not fit."""
        if prod(shape) != prod(self.shape):
            raise ValueError(f"tensor '{self.name}' of shape {list(self.shape)} cannot have shape {list(shape)}")
        other = raw_tensor(self.name, self.datatype, shape, b"")
        other._array = None if self._array is None else self._array.reshape(shape)
        other._data = self._data
        other.device = None if self.device is None else self.device.reshape(shape)
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        same = self.name == other.name and self.datatype == other.datatype and self.shape == other.shape
        return same and bool(np.array_equal(self.array, other.array))

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.datatype!r}, {self.array!r})"


_NOTHING: Array = np.empty(0, np.uint8)


def raw_tensor(name: str, datatype: str, shape: tuple[int, ...], data: Data) -> Tensor:
    """Return a tensor over its encoded bytes, which must be of its spec's size, and for BYTES well-formed."""
    tensor = Tensor(name, datatype, _NOTHING)
    tensor.shape, tensor._array, tensor._data = shape, None, data
    return tensor


def device_tensor(name: str, datatype: str, device: DeviceArray) -> Tensor:
    """Return a tensor that a model left in a device's memory."""
    tensor = Tensor(name, datatype, _NOTHING)
    tensor.shape, tensor._array, tensor.device = device.shape, None, device
    return tensor


def byte_size(datatype: str, shape: tuple[int, ...]) -> int:
    """Return the size of a tensor in bytes; -1 for BYTES."""
    size = element_size(datatype)
    return -1 if size is None else prod(shape) * size


def _decoded(datatype: str, shape: tuple[int, ...], data: Data) -> Array:
    if datatype == "BYTES":
        return string_array(split_strings(data), shape)
    flat: Array = np.frombuffer(data, numpy_dtype(datatype)) if len(data) else np.empty(0, numpy_dtype(datatype))
    if not flat.flags.aligned:
        flat = flat.copy()
    return flat.reshape(shape)


def _encoded(datatype: str, array: Array) -> Data:
    if datatype == "BYTES":
        return join_strings(string_elements(array))
    if array.nbytes < _COPY_BELOW:
        return array.tobytes()
    # As plain bytes, because numpy exports no buffer of types that are not its own, such as BF16.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
