"""The values of tritonserver's flags without effect: a wrong one is refused here as there."""

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from .values import boolean, integer, number, pair, size, size_above_zero

Check = Callable[[str], object]
"""Takes a value. Raises argparse.ArgumentTypeError where it is wrong."""


def _infer_threads(text: str) -> None:
    if not 2 <= integer(text) <= 128:
        raise argparse.ArgumentTypeError(
            "invalid argument for --grpc_infer_thread_count. Must be in the range 2 to 128."
        )


def _pair(separator: str, first: Check, second: Check) -> Check:
    def check(text: str) -> None:
        left, right = pair(text, separator)
        first(left)
        second(right)

    return check


_INTEGERS: Final = (
    "buffer-manager-thread-count",
    "grpc-http2-max-pings-without-data",
    "grpc-infer-allocation-pool-size",
    "http-thread-count",
    "sagemaker-thread-count",
    "vertex-ai-thread-count",
)
CHECKS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(_INTEGERS, integer),
    "cuda-memory-pool-byte-size": _pair(":", integer, size),
    "cuda-virtual-address-size": _pair(":", integer, size),
    "enable-peer-access": boolean,
    "grpc-infer-thread-count": _infer_threads,
    "grpc-max-response-pool-size": size_above_zero("--grpc-max-response-pool-size"),
    "min-supported-compute-capability": number,
}
"""By flag, without its dashes. Flags that may have any value are left out."""


def wrong_value(name: str, value: str) -> str:
    """Return why a flag may not have a value; empty where it may."""
    try:
        if name in CHECKS:
            CHECKS[name](value)
    except argparse.ArgumentTypeError as error:
        return str(error)
    return ""
