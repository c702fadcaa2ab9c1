"""Q/DQ nodes."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


def quantize(
    onnx_path: str,
    quantize_mode: str = "int8",
    calibration_data: Any = None,
    calibration_method: str | None = None,
    calibration_cache_path: str | None = None,
    calibration_data_reader: Any = None,
    calibration_shapes: str | None = None,
    calibration_eps: list[str] | None = None,
    override_shapes: str | None = None,
    op_types_to_quantize: list[str] | None = None,
    op_types_to_exclude: list[str] | None = None,
    op_types_to_exclude_fp16: list[str] | None = None,
    nodes_to_quantize: list[str] | None = None,
    nodes_to_exclude: list[str] | None = None,
    use_external_data_format: bool = False,
    keep_intermediate_files: bool = False,
    output_path: str | None = None,
    **kwargs: Any,
) -> None:
    """Send the first input through a pair of nodes, scaled by the range of the data."""
    assert quantize_mode in ("int8", "fp8", "int4")
    assert isinstance(calibration_data, dict | np.ndarray)
    assert output_path
    model = onnx.load(onnx_path)
    name = model.graph.input[0].name
    scale = np.float32(np.abs(calibration_data[name]).max() / 127)
    model.graph.initializer.append(numpy_helper.from_array(scale, "scale"))
    model.graph.initializer.append(numpy_helper.from_array(np.int8(0), "zero"))
    for node in model.graph.node:
        for index, tensor in enumerate(node.input):
            if tensor == name:
                node.input[index] = f"{name}_dq"
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [f"{name}_dq"]))
    model.graph.node.insert(0, helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"]))
    onnx.save(model, output_path)
