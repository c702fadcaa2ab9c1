"""Translates exceptions of models into serving errors: for want of memory, for an error of the device, or neither.

An error of a device is recognized by the type of a framework's exception, and only then by its message: a message of a
model, or of a client through it, may contain anything.
"""

from types import TracebackType
from typing import Final

from argosy_common import device_errors
from argosy_runtime.errors import ServingError, internal

from .out_of_memory import causes_of, reason_of, with_reason

_ONNX_RUNTIME: Final = "onnxruntime.capi.onnxruntime_pybind11_state"
_TYPES: Final = frozenset(
    [
        "torch.AcceleratorError",
        "pynvml.NVMLError",
        *(f"{_ONNX_RUNTIME}.{name}" for name in ("DeviceReset", "EPFail", "EngineError", "Fail", "RuntimeException")),
    ]
)
"""Types that frameworks raise for device errors, among others; none of them is imported for the check."""
_RAISERS: Final = ("torch", "argosy_runtime.backends.pytorch", "argosy_runtime.backends.transformers")
"""Modules whose plain RuntimeErrors are torch's, which it raises for missing devices and for cuBLAS."""


def failure(message: str, fault: BaseException) -> ServingError:
    """Return the error of requests that failed for this exception of a model."""
    return internal(message, reason_of(fault), device_error(fault))


def explained(error: ServingError) -> ServingError:
    """Return the error with the reason and the device error of its causes."""
    error.device_error = error.device_error or device_error(error)
    return with_reason(error)


def device_error(fault: BaseException) -> str:
    """Return the line of a framework's message about an error of its device; empty where there is none."""
    for cause in causes_of(fault, contexts=True):
        if isinstance(cause, ServingError) and cause.device_error:
            return cause.device_error
        if _is_of_framework(cause) and (line := device_errors.line_of(str(cause))):
            return line
    return ""


def _is_of_framework(fault: BaseException) -> bool:
    if any(f"{kind.__module__}.{kind.__name__}" in _TYPES for kind in type(fault).__mro__):
        return True
    if type(fault) is not RuntimeError:
        return False
    module = _raised_in(fault.__traceback__)
    return any(module == raiser or module.startswith(f"{raiser}.") for raiser in _RAISERS)


def _raised_in(traceback: TracebackType | None) -> str:
    """Return the module of the innermost Python function that the exception passed through."""
    module = ""
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next
    return module
