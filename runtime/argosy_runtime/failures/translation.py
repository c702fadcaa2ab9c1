"""What an exception of a model means beyond its words: that memory ran short, or that its device met an error.

An error of a device is told by the type of the exception that a framework raised, and its words are looked at only
then: in what a model, or a client through it, says for itself everything may stand.
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
"""What frameworks raise where a device fails, among other things; none of them is imported to ask."""
_RAISERS: Final = ("torch", "argosy_runtime.backends.pytorch", "argosy_runtime.backends.transformers")
"""Where a plain RuntimeError is torch's, which tells so of missing devices and of cuBLAS."""


def failure(message: str, fault: BaseException) -> ServingError:
    """Return the error that requests are answered with which failed for this exception of a model."""
    return internal(message, reason_of(fault), device_error(fault))


def explained(error: ServingError) -> ServingError:
    """Return the error, with what the exceptions mean that it came of."""
    error.device_error = error.device_error or device_error(error)
    return with_reason(error)


def device_error(fault: BaseException) -> str:
    """Return the line in which a framework told of an error of its device, empty where none did."""
    for each in causes_of(fault, contexts=True):
        if isinstance(each, ServingError) and each.device_error:
            return each.device_error
        if _is_of_framework(each) and (line := device_errors.line_of(str(each))):
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
