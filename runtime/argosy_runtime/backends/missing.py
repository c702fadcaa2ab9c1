"""Triton's backends that this server does not have, and the nearest way to serve what they serve. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NEAREST_WAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tensorflow": "convert the model to ONNX (python -m tf2onnx.convert --saved-model DIR --output model.onnx, or "
        "--graphdef FILE) and serve it with backend 'onnxruntime'",
        "openvino": "serve the ONNX model that it was converted from with backend 'onnxruntime', whose accelerator "
        "'openvino' (optimization.execution_accelerators.cpu_execution_accelerator) runs it by OpenVINO",
        "dali": "run the pipeline in a model of backend 'python', whose environment has nvidia-dali",
        "identity": "serve a model of backend 'python' that returns its inputs",
        "repeat": "serve a decoupled model of backend 'python'",
        "square": "serve a decoupled model of backend 'python'",
        "armnn_tflite": "convert the model to ONNX (python -m tf2onnx.convert --tflite FILE --output model.onnx) and "
        "serve it with backend 'onnxruntime'",
        "paddle": "convert the model to ONNX (paddle2onnx) and serve it with backend 'onnxruntime'",
    }
)
"""What to do, by backend."""


def unable_to_find(name: str) -> str:
    """Return the error of a backend that is not here: Triton's, then the nearest way where there is one."""
    text = f"unable to find backend library for backend '{name}', try specifying runtime on the model configuration."
    way = NEAREST_WAYS.get(name)
    return f"{text} This server has no backend '{name}': {way}" if way else text
