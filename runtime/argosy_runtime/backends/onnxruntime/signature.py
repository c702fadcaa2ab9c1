"""Inputs and outputs of an ONNX file."""

from collections.abc import Mapping
from dataclasses import dataclass

BFLOAT16 = "BF16"

_V2_NAMES = {
    "tensor(bool)": "BOOL",
    "tensor(uint8)": "UINT8",
    "tensor(uint16)": "UINT16",
    "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64",
    "tensor(int8)": "INT8",
    "tensor(int16)": "INT16",
    "tensor(int32)": "INT32",
    "tensor(int64)": "INT64",
    "tensor(float16)": "FP16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": "BYTES",
    "tensor(bfloat16)": BFLOAT16,
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor.

    `shape` is full, with -1 for what varies; `datatype` is a V2 name, None where there is none.
    """

    shape: tuple[int, ...]
    datatype: str | None
    onnx_type: str

    @property
    def has_variable_first(self) -> bool:
        """True if the first dimension can be a batch."""
        return bool(self.shape) and self.shape[0] == -1


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs, outputs, and the initializers a request may override, by name and in the file's order."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    overridable: Mapping[str, TensorInfo]

    @property
    def can_batch(self) -> bool:
        """True if every input and output has a variable first dimension."""
        return all(info.has_variable_first for side in (self.inputs, self.outputs) for info in side.values())

    @property
    def has_strings(self) -> bool:
        """True if any input or output is text."""
        return any(info.datatype == "BYTES" for side in (self.inputs, self.outputs) for info in side.values())

    def is_scalar(self, name: str) -> bool:
        """Return whether an input has no dimension at all, which V2 and configurations cannot express."""
        info = self.inputs.get(name) or self.overridable.get(name)
        return info is not None and not info.shape


def tensor_info(onnx_type: str, shape: list[int | str | None] | None) -> TensorInfo:
    """Return a tensor of onnxruntime's signature, where a dimension that varies is a name or None."""
    dims = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in shape or [])
    return TensorInfo(dims, _V2_NAMES.get(onnx_type), onnx_type)
