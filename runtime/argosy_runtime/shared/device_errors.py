"""Whether something failed because a GPU, or the driver below it, does not work. Pure.

CUDA's errors have no exception in common, so their words are looked at: those of PyTorch, ONNX Runtime, TensorRT and
the driver. Want of memory is no such error, nor is a call with wrong arguments, nor code that was built for other GPUs.
After such an error nothing works any more in the process that met it; where the GPU is well, a new process works.
"""

import re
from typing import Final

_NO_DEVICE_ERROR: Final = (
    r"out of memory|invalid|no kernel image|named symbol not found|the provided PTX|operation not|API call|peer access"
    r"|CU(BLAS|DNN)_STATUS_(?!EXECUTION|INTERNAL)"
)
"""How words go on behind `CUDA error:` that say nothing of the GPU."""
_CODES: Final = "3|46|100|214|220|226|700|702|710|714|715|716|717|718|719|802|999"
"""CUDA's numbers: initialization, no or busy devices, memory and NVLink errors, faults of kernels, unknown ones."""
_NAMES: Final = (
    "ecc|no_?device|devices?_?unavailable|initialization|not_?initialized|nvlink|hardware|illegal|misaligned"
    "|invalid_?(address|pc)|launch_?(failure|failed|timeout)|assert|contained|system_?(not_?ready|driver)|unknown"
)
_WORDS: Final = re.compile(
    rf"CUDA (runtime |driver )?error:? (?!{_NO_DEVICE_ERROR})"
    rf"|cuda_?error_?({_NAMES})"
    rf"|CUDA failure ({_CODES})\b|CUDA's \w+ failed with ({_CODES}):|cuInit\S* failed"
    r"|CU(BLAS|DNN)_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR)"
    r"|device-side assert|illegal memory access was|unspecified launch failure"
    r"|uncorrectable (ECC|NVLink|memory)|fallen off the bus|GPU (is|has been) lost|GPU requires reset"
    r"|\bXid:? ?(\(|\d)"
    r"|no CUDA-capable device|No CUDA GPUs are available|(is|are) busy or unavailable"
    r"|CUDA driver (initialization|version is insufficient|is a stub)|Found no NVIDIA driver",
    re.IGNORECASE,
)


def said_in(words: str) -> bool:
    """Return whether the words of an error speak of a device that does not work."""
    return _WORDS.search(words) is not None


def line_of(words: str) -> str:
    """Return the last line of an error that speaks of a device; empty where none does: a traceback ends with
    its cause.
    """
    return next((line.strip() for line in reversed(words.splitlines()) if said_in(line)), "")
