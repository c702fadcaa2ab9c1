"""Conversion of requests' tensors to torch's and back: numpy arrays, arrays in a device's memory, BF16 and strings."""

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import Array
from argosy_runtime.tensors.device_arrays import DEVICE_TRANSFERS, DeviceArray, DeviceMemory

TORCH_DTYPES: Final = {
    "BOOL": torch.bool,
    "UINT8": torch.uint8,
    "UINT16": torch.uint16,
    "UINT32": torch.uint32,
    "UINT64": torch.uint64,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP16": torch.float16,
    "FP32": torch.float32,
    "FP64": torch.float64,
    "BF16": torch.bfloat16,
}
_V2_NAMES: Final = {dtype: name for name, dtype in TORCH_DTYPES.items()}


class TorchMemory(DeviceMemory):
    """A contiguous tensor that a model left in its device's memory."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def read(self, offset: int, count: int) -> Array:
        part = self.tensor.reshape(-1)[offset : offset + count]
        DEVICE_TRANSFERS.fetched(part.nbytes)
        return to_numpy(part.cpu())

    def __dlpack__(self, *, stream: object = None) -> object:
        # As bytes: not every framework takes every type, BOOL for one.
        return self.tensor.reshape(-1).view(torch.uint8).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.tensor.__dlpack_device__()
        return int(kind), index


def from_device(datatype: str, array: DeviceArray) -> torch.Tensor:
    """Return a tensor over the memory of any framework's array; it lasts while `array` does."""
    memory = array.memory
    block = memory.tensor if isinstance(memory, TorchMemory) else from_dlpack(memory)
    flat = block.reshape(-1).view(TORCH_DTYPES[datatype])
    return flat[array.offset : array.offset + array.size].reshape(array.shape)


def from_numpy(array: Array) -> torch.Tensor:
    """Return a tensor on the host that shares memory with the array where it can."""
    source = array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
    if source.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(source.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(source)


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return a tensor on the host as an array over the same memory."""
    host = tensor.detach().contiguous()
    if host.dtype == torch.bfloat16:
        bits: Array = host.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return bits
    plain: Array = host.numpy()
    return plain


def from_texts(values: Sequence[str]) -> Array:
    """Return TorchScript's strings as BYTES."""
    array = np.empty(len(values), dtype=np.object_)
    array[:] = [value.encode("utf-8") for value in values]
    return array


def to_texts(model: str, name: str, arrays: Sequence[Array]) -> list[str]:
    """Return BYTES as TorchScript's strings. Raises ServingError where they are not UTF-8."""
    try:
        return [item.decode("utf-8") for array in arrays for item in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise invalid(f"model '{model}', input '{name}': TorchScript strings must be UTF-8: {error}") from error


def check_datatype(model: str, name: str, value: Any, expected: str) -> None:
    """Raise ServingError where an output is no tensor, or not of the configured datatype."""
    datatype = "BYTES" if isinstance(value, list) else None
    if isinstance(value, torch.Tensor):
        datatype = _V2_NAMES.get(value.dtype, str(value.dtype))
    if datatype is None:
        raise internal(
            f"model '{model}', output '{name}': the model returned {type(value).__name__}, expected a tensor"
        )
    if datatype != expected:
        raise internal(
            f"model '{model}': unexpected datatype TYPE_{datatype} for inference output '{name}', "
            f"expecting TYPE_{expected}"
        )
