"""tritonserver's flags of the gRPC port's transport."""

import argparse
from collections.abc import Callable
from typing import Final

from argosy_runtime.http2 import KeepAliveRules
from argosy_runtime.http2.keepalive import NEVER

from .tls import TlsFiles

# What gRPC takes for "no limit": the largest number it can hold.
COMPRESSION: Final = {"none": 0, "low": 1, "medium": 6, "high": 9}
"""zlib's levels by tritonserver's names."""
_UNLIMITED_MS: Final = 2**31 - 1


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    """Add the flags; times are in milliseconds, as gRPC has them."""
    add = parser.add_argument
    add(
        "--grpc-keepalive-time",
        type=_seconds,
        default=7200.0,
        help="ms of silence before a client is sent a PING",
    )
    add("--grpc-keepalive-timeout", type=_seconds, default=20.0, help="ms in which the client has to answer that PING")
    add(
        "--grpc-keepalive-permit-without-calls",
        type=boolean,
        default=False,
        help="PINGs also between calls",
    )
    pings = "--grpc-http2-min-recv-ping-interval-without-data"
    add(pings, type=_seconds, default=300.0, help="fewest ms between two PINGs of a client that sends no data")
    add("--grpc-http2-max-ping-strikes", type=int, default=2, help="PINGs that may come sooner; 0: any number")
    add("--grpc-max-connection-age", type=_seconds, default=NEVER, help="ms before a client is asked to connect again")
    add("--grpc-max-connection-age-grace", type=_seconds, default=NEVER, help="ms that its calls in progress then have")
    level = "--grpc-infer-response-compression-level"
    add(level, choices=COMPRESSION, default="none", help="gzip for responses, where clients read it")
    add("--grpc-use-ssl", type=boolean, default=False)
    add("--grpc-use-ssl-mutual", type=boolean, default=False, help="clients need certificates, too")
    add("--grpc-server-cert", default="", help="PEM file")
    add("--grpc-server-key", default="", help="PEM file")
    add("--grpc-root-cert", default="", help="PEM file of the authorities that sign clients' certificates")


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


def tls_files(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> TlsFiles | None:
    """Return the TLS files of the flags; None for plain text. Ends the process where a required file is missing."""
    if not (arguments.grpc_use_ssl or arguments.grpc_use_ssl_mutual):
        return None
    if not (arguments.grpc_server_cert and arguments.grpc_server_key):
        parser.error("--grpc-use-ssl needs --grpc-server-cert and --grpc-server-key")
    if arguments.grpc_use_ssl_mutual and not arguments.grpc_root_cert:
        parser.error("--grpc-use-ssl-mutual needs --grpc-root-cert")
    root = arguments.grpc_root_cert if arguments.grpc_use_ssl_mutual else ""
    return TlsFiles(certificate=arguments.grpc_server_cert, key=arguments.grpc_server_key, clients_root=root)


def _seconds(text: str) -> float:
    """Return milliseconds as seconds."""
    try:
        milliseconds = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of milliseconds") from None
    if milliseconds < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is below 0")
    return NEVER if milliseconds >= _UNLIMITED_MS else milliseconds / 1000
