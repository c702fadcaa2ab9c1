"""The activator's command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.flags import SERVICE_ACCOUNT, ConfigMaps, Files, configmap, documents_of, quantity
from argosy_common.idle import IdlePeriod, seconds

from .fair_queue import Limits
from .spans import TraceOptions


@dataclass(frozen=True, slots=True)
class Flags:
    """Everything the command line says. `pod` is a UID; ports of 0 are any free ones; an empty host is every address.

    `exit_s`: how long requests may still wait after SIGTERM.
    """

    documents: ConfigMaps | Files
    pod: str
    host: str
    http_port: int
    grpc_port: int
    metrics_port: int
    limits: Limits
    idle: IdlePeriod
    exit_s: float
    log: str
    tracing: TraceOptions | None = None


def parse(arguments: Sequence[str]) -> Flags:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    return Flags(
        documents=documents_of(parser, options, "members"),
        pod=options.pod,
        host=options.host,
        http_port=options.http_port,
        grpc_port=options.grpc_port,
        metrics_port=options.metrics_port,
        limits=Limits(options.max_held_requests, options.max_held_bytes),
        idle=IdlePeriod(options.drain_quiet_secs, options.drain_timeout_secs),
        exit_s=options.exit_timeout_secs,
        log=options.log,
        tracing=_tracing(parser, options.trace_config),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="argosy_agent.activator",
        description="Hold requests for models that no server has, and pass them on once one has.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--configmap", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap that says where models are ready")
    add(
        "--state",
        type=configmap,
        metavar="NAMESPACE/NAME",
        help="the ConfigMap that gets the number of waiting requests",
    )
    add("--credentials", type=Path, default=SERVICE_ACCOUNT, help="the folder with the API server's token and ca.crt")
    add("--members", type=Path, metavar="FILE", help="where models are ready, instead of --configmap")
    add(
        "--state-file",
        type=Path,
        metavar="FILE",
        help="the file that gets the number of waiting requests, instead of --state",
    )
    add("--pod", default="local", metavar="UID", help="the Pod that this is")
    add("--host", default="", help="the address that is listened on; default: every one")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        add(f"--{name}-port", type=_port, default=port, help=f"default: {port}; 0 takes a free one")
    limits = Limits()
    add("--max-held-requests", type=_count, default=limits.requests, help=f"default: {limits.requests}")
    add("--max-held-bytes", type=quantity, default=limits.size, help="of requests that wait in memory; default: 256Mi")
    idle_help = "on SIGTERM, go on until no request has come for so long"
    add("--drain-quiet-secs", type=seconds, default=0.0, help=idle_help)
    add("--drain-timeout-secs", type=seconds, default=60.0, help="for how long at most, if requests go on coming")
    add("--exit-timeout-secs", type=seconds, default=30.0, help="how long those that wait may wait after that")
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="what is logged")
    add("--trace-config", action="append", default=[], help="spans of requests, by the server's flag and settings")
    return parser


def _tracing(parser: argparse.ArgumentParser, settings: Sequence[str]) -> TraceOptions | None:
    """Return what servers' `--trace-config` asks for; argparse ends the process where spans could not be sent."""
    values = dict(setting.partition("=")[::2] for setting in settings)
    mode, level = values.pop("mode", ""), values.pop("level", "OFF")
    url, rate = values.pop("opentelemetry,url", ""), values.pop("rate", "1000")
    delay = values.pop("opentelemetry,bsp_schedule_delay", "5000")
    if values:
        parser.error(f"argument --trace-config: the activator has no setting {sorted(values)[0]!r}")
    if not settings or level == "OFF":
        return None
    if mode != "opentelemetry" or not url:
        parser.error("argument --trace-config: spans need mode=opentelemetry and opentelemetry,url=URL")
    try:
        return TraceOptions(url, _within(rate, 0, 2**31 - 1), _within(delay, 1, 2**31 - 1))
    except argparse.ArgumentTypeError as error:
        return parser.error(f"argument --trace-config: {error}")


def _port(words: str) -> int:
    return _within(words, 0, 65535)


def _count(words: str) -> int:
    return _within(words, 1, 2**31 - 1)


def _within(words: str, least: int, most: int) -> int:
    if not words.isdecimal() or not least <= int(words) <= most:
        raise argparse.ArgumentTypeError(f"{words!r} is no number from {least} to {most}")
    return int(words)
