"""CUDA errors of a GPU: the words and numbers of frameworks and the driver, and how a server marks them. Pure.

After some errors nothing works any more in the process that met them, whose CUDA context is lost, and a new process
works: these are `BROKEN`, and a program can bring them about. Others say that the GPU itself, or the driver below it,
does not work: `FAULTY`. All else is none of these, as want of memory, wrong arguments or code for other GPUs.
Only what a framework itself raised is to be looked at: in the words of a model everything may stand.
"""

import re
from collections.abc import Mapping
from typing import Final

FAULTY: Final[Mapping[int, tuple[str, str]]] = {
    100: ("no CUDA-capable device is detected", "no_?device"),
    214: ("uncorrectable ECC error encountered", "ecc_?uncorrectable"),
    220: ("uncorrectable NVLink error detected during the execution", "nvlink_?uncorrectable"),
    802: ("system not yet initialized", "system_?not_?ready"),
    803: ("system has unsupported display driver / cuda driver combination", "system_?driver_?mismatch"),
    999: ("unknown error", "unknown"),
}
"""CUDA's numbers, with the words of each and its name behind `cudaError` or `CUDA_ERROR_`."""
BROKEN: Final[Mapping[int, tuple[str, str]]] = {
    226: ("Invalid access of peer GPU memory over nvlink or a hardware error", "contained"),
    700: ("an illegal memory access was encountered", "illegal_?address"),
    702: ("the launch timed out and was terminated", "launch_?timeout"),
    710: ("device-side assert triggered", "assert"),
    714: ("hardware stack error", "hardware_?stack_?error"),
    715: ("an illegal instruction was encountered", "illegal_?instruction"),
    716: ("misaligned address", "misaligned_?address"),
    717: ("operation not supported on global/shared address space", "invalid_?address_?space"),
    718: ("invalid program counter", "invalid_?pc"),
    719: ("unspecified launch failure", "launch_?(failure|failed)"),
}
"""Likewise."""
_OF_DRIVERS: Final = (
    r"|uncorrectable (ECC|NVLink)|fallen off the bus|GPU (is|has been) lost|GPU requires reset|\bXid:? ?(\(|\d)"
    r"|No CUDA GPUs are available|Found no NVIDIA driver|CUDA driver initialization failed|CUDA unknown error"
)
"""What needs no number: torch's words for missing devices, and the driver's own."""
_OF_LIBRARIES: Final = r"|CU(BLAS|DNN)_STATUS_EXECUTION_FAILED"
"""What cuBLAS and cuDNN say of kernels that failed."""
_SIGN: Final = "device error: "
_LOAD: Final = re.compile(r"load failed for model '[^']*': version \d+ is at UNAVAILABLE state: [A-Za-z ]+: ")


def _pattern(errors: Mapping[int, tuple[str, str]], more: str) -> re.Pattern[str]:
    numbers = "|".join(str(number) for number in errors)
    words = "|".join(re.escape(words) for words, _ in errors.values())
    names = "|".join(name for _, name in errors.values())
    return re.compile(
        rf"(CUDA (runtime |driver )?error:? |Cuda (Runtime|Driver) \()({words})"
        rf"|cuda_?error_?({names})\b"
        rf"|(CUDA failure|CUDA's \w+ failed with|CUDA initialization failure with error:|\? Error) ({numbers})\b"
        rf"{more}",
        re.IGNORECASE,
    )


_FAULTY: Final = _pattern(FAULTY, _OF_DRIVERS)
_ANY: Final = _pattern({**FAULTY, **BROKEN}, _OF_DRIVERS + _OF_LIBRARIES)


def line_of(words: str) -> str:
    """Return the first line of a framework's error that speaks of an error of its device, empty where none does."""
    return next((line.strip() for line in words.splitlines() if _ANY.search(line)), "")


def is_faulty(line: str) -> bool:
    """Return whether such a line says that the GPU, or its driver, does not work."""
    return _FAULTY.search(line) is not None


def signed(message: str, line: str) -> str:
    """Return an error's message, with a prefix where its `line` is of a GPU that does not work."""
    return message if message.startswith(_SIGN) or not is_faulty(line) else _SIGN + message


def matches(reason: str) -> bool:
    """Return whether a server's reason, or its answer to a load, has that sign."""
    return _LOAD.sub("", reason, count=1).startswith(_SIGN)
