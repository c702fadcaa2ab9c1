"""tritonserver's flags of the gRPC port's transport."""

import argparse
from collections.abc import Callable
from typing import Final

from argosy_runtime.http2 import KeepAliveRules
from argosy_runtime.http2.keepalive import NEVER

# What gRPC takes for "no limit": the largest number it can hold.
COMPRESSION: Final = {"none": 0, "low": 1, "medium": 6, "high": 9}
"""zlib's levels by tritonserver's names."""
_UNLIMITED_MS: Final = 2**31 - 1


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool], natural: Callable[[str], int]) -> None:
    """Add the flags; times are in milliseconds, as gRPC has them."""

    def seconds(text: str) -> float:
        milliseconds = natural(text)
        return NEVER if milliseconds == _UNLIMITED_MS else milliseconds / 1000

    add = parser.add_argument
    add(
        "--grpc-keepalive-time",
        type=seconds,
        default=7200.0,
        help="ms of silence before a client is sent a PING",
    )
    add("--grpc-keepalive-timeout", type=seconds, default=20.0, help="ms in which the client has to answer that PING")
    add(
        "--grpc-keepalive-permit-without-calls",
        type=boolean,
        default=False,
        help="PINGs also between calls",
    )
    pings = "--grpc-http2-min-recv-ping-interval-without-data"
    add(pings, type=seconds, default=300.0, help="fewest ms between two PINGs of a client that sends no data")
    add("--grpc-http2-max-ping-strikes", type=natural, default=2, help="PINGs that may come sooner; 0: any number")
    add("--grpc-max-connection-age", type=seconds, default=NEVER, help="ms before a client is asked to connect again")
    add("--grpc-max-connection-age-grace", type=seconds, default=NEVER, help="ms that its calls in progress then have")
    level = "--grpc-infer-response-compression-level"
    add(level, type=str.lower, choices=COMPRESSION, default="none", help="gzip for responses, where clients read it")
    add("--allow-grpc-reflection", type=boolean, default=True, help="clients such as grpcurl may read the schemas")
    stopping = "refuse requests with a status while the server ends, as Triton before 25.05; else the port is closed"
    add("--grpc-answer-while-stopping", type=boolean, default=False, help=stopping)


def keepalive_rules(arguments: argparse.Namespace) -> KeepAliveRules:
    """Return the keepalive rules of the flags."""
    return KeepAliveRules(
        time=arguments.grpc_keepalive_time,
        timeout=arguments.grpc_keepalive_timeout,
        permit_without_calls=arguments.grpc_keepalive_permit_without_calls,
        min_ping_interval=arguments.grpc_http2_min_recv_ping_interval_without_data,
        max_ping_strikes=arguments.grpc_http2_max_ping_strikes,
        max_age=arguments.grpc_max_connection_age,
        max_age_grace=arguments.grpc_max_connection_age_grace,
    )
