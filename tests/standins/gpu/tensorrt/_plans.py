"""The stand-in's plans: TensorRT's header, what the build decided, and the ONNX model that is run."""

import json
import struct
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADER = struct.Struct("<4sI16x4BI")
TYPES = {
    TensorProto.FLOAT: "FLOAT",
    TensorProto.FLOAT16: "HALF",
    TensorProto.BFLOAT16: "BF16",
    TensorProto.INT8: "INT8",
    TensorProto.UINT8: "UINT8",
    TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64",
    TensorProto.BOOL: "BOOL",
}


@dataclass
class Meta:
    """Decisions of a build. Profiles: shapes and shape tensors' values by input, each (min, opt, max)."""

    compute_capability: str = "9.0"
    profiles: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    shape_tensors: list[str] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    compatibility: str = "NONE"
    host_code: bool = False
    flags: list[str] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)
    ranges: dict[str, list[float]] = field(default_factory=dict)
    """The smallest and the largest value that calibration saw of each input, read as the network's type."""


def write(model: onnx.ModelProto, meta: Meta, version: str) -> bytes:
    """Return the bytes of a plan."""
    text = json.dumps(asdict(meta)).encode()
    numbers = [int(part) for part in version.split(".")]
    return HEADER.pack(b"ftrt", 0, *numbers, len(text)) + text + model.SerializeToString()


def read(content: bytes) -> tuple[tuple[int, ...], Meta, onnx.ModelProto]:
    """Return the version that wrote a plan, and its contents. Raises ValueError where it is no plan."""
    if len(content) < HEADER.size or content[:4] != b"ftrt":
        raise ValueError("Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match")
    _, _, *version, length = HEADER.unpack_from(content)
    body = HEADER.size + length
    return tuple(version), Meta(**json.loads(content[HEADER.size : body])), onnx.load_from_string(content[body:])


def shape_of(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Return the shape, -1 for what varies."""
    return tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in info.type.tensor_type.shape.dim)


def output_shapes(
    model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]], values: dict[str, np.ndarray]
) -> dict[str, tuple[int, ...]]:
    """Return the outputs' shapes for these inputs; -1 for a dimension that depends on the data."""
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    del bound.graph.value_info[:]
    for info in list(bound.graph.input):
        if info.name in values:
            bound.graph.initializer.append(numpy_helper.from_array(values[info.name], info.name))
            bound.graph.input.remove(info)
            continue
        made = helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, list(shapes[info.name]))
        info.CopyFrom(made)
    for info in bound.graph.output:
        info.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(bound, data_prop=True)
    return {info.name: shape_of(info) for info in inferred.graph.output}
