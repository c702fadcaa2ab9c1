"""A stand-in for NVIDIA's `tensorrt`: the names, arguments and failures that its documentation and bindings give.

Whatever is not there raises AttributeError, and wrong types TypeError, as with the real bindings. A "plan" holds an
ONNX model, which runs on the host in the order of the stream that it was enqueued on. `become` chooses the release.
"""

import os
from typing import Any

from . import _build, _enums
from ._build import Builder, IBuilderConfig, IOptimizationProfile
from ._enums import *  # noqa: F403
from ._network import INetworkDefinition, ITensor, OnnxParser
from ._runtime import (
    ICudaEngine,
    IExecutionContext,
    IHostMemory,
    ILogger,
    IOutputAllocator,
    IProgressMonitor,
    Logger,
    Runtime,
    init_libnvinfer_plugins,
)

__version__ = ""
_ONLY_IN_10 = ("IInt8EntropyCalibrator2", "IInt8EntropyCalibrator", "IInt8MinMaxCalibrator")


def become(version: str) -> None:
    """Play this release, as `10.16.1.11` or `11.4.0.106`."""
    major = int(version.split(".")[0])
    names: dict[str, Any] = globals()
    names["__version__"] = version
    names["BuilderFlag"] = _enums.builder_flags(major)
    names["NetworkDefinitionCreationFlag"] = _enums.creation_flags(major)
    for name in _ONLY_IN_10:
        names.pop(name, None)
    if major < 11:
        names.update({name: getattr(_build, name) for name in _ONLY_IN_10})


become(os.environ.get("STANDIN_TENSORRT_VERSION", "10.16.1.11"))

__all__ = [
    "Builder",
    "IBuilderConfig",
    "ICudaEngine",
    "IExecutionContext",
    "IHostMemory",
    "ILogger",
    "INetworkDefinition",
    "IOptimizationProfile",
    "IOutputAllocator",
    "IProgressMonitor",
    "ITensor",
    "Logger",
    "OnnxParser",
    "Runtime",
    "init_libnvinfer_plugins",
]
