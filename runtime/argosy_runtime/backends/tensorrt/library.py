"""TensorRT's Python package: its logger, and its names for what a configuration says.

Versions 10 and 11; both have what is used here. The package has no type stubs.
"""

import threading
from typing import Any, Final

import tensorrt
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_common import device_errors
from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal, invalid

trt: Any = tensorrt

V2_NAMES: Final = {
    "FLOAT": "FP32",
    "HALF": "FP16",
    "BF16": "BF16",
    "INT8": "INT8",
    "UINT8": "UINT8",
    "INT32": "INT32",
    "INT64": "INT64",
    "BOOL": "BOOL",
}
"""V2 names by those of `trt.DataType`; what is missing here no configuration can describe."""

_LEVELS: Final = {"INTERNAL_ERROR": "error", "ERROR": "error", "WARNING": "warning"}
_plugins = threading.Lock()
_with_plugins: list[object] = []


class Logger(trt.ILogger):  # type: ignore[misc]  # TensorRT has no types
    """TensorRT's logger: TensorRT hardly ever raises, and its log alone has the reason of a failed call."""

    def __init__(self, host: Host | None = None) -> None:
        trt.ILogger.__init__(self)
        self._host = host
        self.last_error = ""

    def log(self, severity: Any, msg: str) -> None:
        """Take a message of TensorRT, from any thread."""
        level = _LEVELS.get(severity.name)
        if level == "error":
            self.last_error = msg
        if level is not None and self._host is not None:
            self._host.log(level, msg)

    def reason(self) -> str:
        """Return the last error, which is the reason of the last failed call."""
        return self.last_error or "TensorRT gives no reason"

    def failure(self, what: str, then: str = "") -> ServingError:
        """Return an error with the failed call, its reason, and an advice (`then`)."""
        reason = self.reason()
        return internal(f"{what}: {reason}{then}", device_error=device_errors.line_of(reason))


def version() -> tuple[int, ...]:
    """Return the library's version: major, minor, patch, build."""
    return tuple(int(part) for part in str(trt.__version__).split(".")[:4] if part.isdigit())


def load_plugins() -> None:
    """Register the standard plugins, once a process. The lean runtime has none."""
    with _plugins:
        if not _with_plugins and hasattr(trt, "init_libnvinfer_plugins"):
            logger = Logger()
            trt.init_libnvinfer_plugins(logger, "")
            _with_plugins.append(logger)  # the registry keeps it


def runs_host_code(config: ModelConfig) -> bool:
    """Return whether plans may run code of their own, as version-compatible ones do: for trusted sources."""
    return Parameters(config).flag("VERSION_COMPATIBLE", False)


def allocation_strategy(config: ModelConfig, name: str) -> Any:
    """Return the parameter `execution_context_allocation_strategy`. Raises ServingError in Triton's words."""
    value = Parameters(config).text("execution_context_allocation_strategy", "STATIC")
    if value not in ("STATIC", "ON_PROFILE_CHANGE"):
        raise invalid(
            f"Invalid value for 'execution_context_allocation_strategy': '{value}' for model instance '{name}'. "
            "Supported values are 'STATIC' and 'ON_PROFILE_CHANGE'."
        )
    return getattr(trt.ExecutionContextAllocationStrategy, value)
