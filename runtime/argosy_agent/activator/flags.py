"""The activator's command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.flags import SERVICE_ACCOUNT, ConfigMaps, Files, configmap, exchange, quantity
from argosy_common.idle import QuietPeriod, seconds

from .room import Limits


@dataclass(frozen=True, slots=True)
class Flags:
    """Everything the command line says. `pod` is a UID; ports of 0 are any free ones; an empty host is every address.

    `exit_s`: how long requests that wait may go on when it is told to end.
    """

    exchange: ConfigMaps | Files
    pod: str
    host: str
    http_port: int
    grpc_port: int
    metrics_port: int
    limits: Limits
    quiet: QuietPeriod
    exit_s: float
    log: str


def parse(arguments: Sequence[str]) -> Flags:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = _parser()
    given = parser.parse_args(arguments)
    return Flags(
        exchange=exchange(parser, given, "members"),
        pod=given.pod,
        host=given.host,
        http_port=given.http_port,
        grpc_port=given.grpc_port,
        metrics_port=given.metrics_port,
        limits=Limits(given.max_held_requests, given.max_held_bytes),
        quiet=QuietPeriod(given.drain_quiet_secs, given.drain_timeout_secs),
        exit_s=given.exit_timeout_secs,
        log=given.log,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="argosy_agent.activator",
        description="Hold requests for models that no server has, and pass them on once one has.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--configmap", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap that says where models are ready")
    add("--state", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap that is told who waits")
    add("--credentials", type=Path, default=SERVICE_ACCOUNT, help="the folder with the API server's token and ca.crt")
    add("--members", type=Path, metavar="FILE", help="where models are ready, instead of --configmap")
    add("--state-file", type=Path, metavar="FILE", help="what is told who waits, instead of --state")
    add("--pod", default="local", metavar="UID", help="the Pod that this is")
    add("--host", default="", help="the address that is listened on; default: every one")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        add(f"--{name}-port", type=_port, default=port, help=f"default: {port}; 0 takes a free one")
    limits = Limits()
    add("--max-held-requests", type=_count, default=limits.requests, help=f"default: {limits.requests}")
    add("--max-held-bytes", type=quantity, default=limits.size, help="of requests that wait in memory; default: 256Mi")
    quiet = "when told to end, go on until nobody has asked for so long"
    add("--drain-quiet-secs", type=seconds, default=0.0, help=quiet)
    add("--drain-timeout-secs", type=seconds, default=60.0, help="for how long at most, if requests go on coming")
    add("--exit-timeout-secs", type=seconds, default=30.0, help="how long those that wait may wait after that")
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="what is logged")
    return parser


def _port(words: str) -> int:
    return _within(words, 0, 65535)


def _count(words: str) -> int:
    return _within(words, 1, 2**31 - 1)


def _within(words: str, least: int, most: int) -> int:
    if not words.isdecimal() or not least <= int(words) <= most:
        raise argparse.ArgumentTypeError(f"{words!r} is no number from {least} to {most}")
    return int(words)
