"""Opening ONNX files with ONNX Runtime, and what its errors mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

LEVELS = {
    "disable": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": ort.GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
ERROR = 3
"""The least severity that ONNX Runtime writes of."""
_CAUSES = (
    (state.NotImplemented, BuildFailure.UNSUPPORTED_MODEL, "has an operator that this onnxruntime does not know"),
    (state.InvalidGraph, BuildFailure.UNSUPPORTED_MODEL, "is no graph that this onnxruntime takes"),
    (state.InvalidProtobuf, BuildFailure.MODEL_INVALID, "is cut off, or no ONNX file"),
    (state.NoSuchFile, BuildFailure.MODEL_INVALID, "is not there"),
)


def options_of(level: str = "all") -> Any:
    """Return session options with one level of graph optimization."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = ERROR
    return options


def opened(path: Path, providers: Sequence[str], options: Any = None, **more: Any) -> Any:
    """Return a session of a file. Raises BuildError: MODEL_INVALID, UNSUPPORTED_MODEL, BUILDER_MISSING."""
    there = ort.get_available_providers()
    missing = [provider for provider in providers if provider not in there]
    if missing:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"this image's onnxruntime has no {missing[0]}: set engine.image to one with onnxruntime-gpu",
        )
    try:
        return ort.InferenceSession(str(path), options or options_of(), providers=list(providers), **more)
    except Exception as error:
        for kind, failure, says in _CAUSES:
            if isinstance(error, kind):
                raise BuildError(failure, f"{path.name} {says}: {first_line_of(error)}") from error
        message = first_line_of(error)
        raise BuildError(BuildFailure.MODEL_INVALID, f"{path.name} cannot be opened: {message}") from error


def first_line_of(error: Exception) -> str:
    """Return its words without its own prefix, on one line."""
    text = " ".join(str(error).split())
    head, _, rest = text.partition(" : ")
    while head.startswith("[ONNXRuntimeError]") or head.isdigit() or head.isupper():
        text = rest
        head, _, rest = text.partition(" : ")
    return text[:500] or type(error).__name__
