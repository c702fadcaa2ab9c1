"""The values of tritonserver's flags without effect: a wrong one is refused here as there."""

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from .values import boolean, integer

Check = Callable[[str], object]
"""Takes a value. Raises argparse.ArgumentTypeError where it is wrong."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Invalid option value. Got {text}") from None


def _at_least_one(text: str) -> None:
    if integer(text) <= 0:
        raise argparse.ArgumentTypeError("Error: --grpc-max-response-pool-size must be greater than 0.")


def _infer_threads(text: str) -> None:
    if not 2 <= integer(text) <= 128:
        raise argparse.ArgumentTypeError(
            "invalid argument for --grpc_infer_thread_count. Must be in the range 2 to 128."
        )


def _pair(separator: str, first: Check, second: Check) -> Check:
    def check(text: str) -> None:
        left, middle, right = text.partition(separator)
        if not middle:
            raise argparse.ArgumentTypeError(
                "Cannot parse pair option due to incorrect number of inputs.--<pair option> argument requires format "
                f"<first>{separator}<second>. Found: {text}"
            )
        first(left)
        second(right)

    return check


_INTEGERS: Final = (
    "buffer-manager-thread-count",
    "grpc-http2-max-pings-without-data",
    "grpc-infer-allocation-pool-size",
    "http-thread-count",
    "model-load-retry-count",
    "sagemaker-thread-count",
    "trace-count",
    "trace-log-frequency",
    "trace-rate",
    "vertex-ai-thread-count",
)
CHECKS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(_INTEGERS, integer),
    "cuda-memory-pool-byte-size": _pair(":", integer, integer),
    "cuda-virtual-address-size": _pair(":", integer, integer),
    "enable-peer-access": boolean,
    "grpc-infer-thread-count": _infer_threads,
    "grpc-max-response-pool-size": _at_least_one,
    "min-supported-compute-capability": _number,
    "model-load-gpu-limit": _pair(":", integer, _number),
    "model-namespacing": boolean,
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
