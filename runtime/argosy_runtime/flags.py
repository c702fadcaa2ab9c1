"""tritonserver's command line, as this server takes it."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .repository.options import ControlMode, RepositoryOptions


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Everything the command line says. Times in seconds; a port of None turns its front end off."""

    repository: RepositoryOptions
    server_id: str
    http_address: str
    http_port: int | None
    grpc_address: str
    grpc_port: int | None
    metrics_address: str
    metrics_port: int | None
    max_input_size: int
    exit_timeout: float
    exit_on_error: bool
    strict_readiness: bool
    reuse_http_port: bool
    reuse_grpc_port: bool
    header_forward_pattern: str
    log_level: str


def parse(arguments: Sequence[str]) -> ServerOptions:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = _parser()
    given = parser.parse_args(arguments)
    paths = tuple(Path(path) for path in given.model_repository)
    if given.load_model and given.model_control_mode != ControlMode.EXPLICIT:
        parser.error("--load-model can only be used with --model-control-mode=explicit")
    return ServerOptions(
        repository=RepositoryOptions(
            paths=paths,
            control_mode=ControlMode(given.model_control_mode),
            startup_models=tuple(given.load_model),
            poll_seconds=given.repository_poll_secs,
            autocomplete=not given.disable_auto_complete_config,
            config_name=given.model_config_name,
            load_timeout=given.model_load_timeout_secs,
            unload_grace=given.exit_timeout_secs,
            parallel_loads=given.model_load_thread_count,
        ),
        server_id=given.id,
        http_address=given.http_address,
        http_port=given.http_port if given.allow_http else None,
        grpc_address=given.grpc_address,
        grpc_port=given.grpc_port if given.allow_grpc else None,
        metrics_address=given.metrics_address or given.http_address,
        metrics_port=given.metrics_port if given.allow_metrics else None,
        max_input_size=given.http_max_input_size,
        exit_timeout=given.exit_timeout_secs,
        exit_on_error=given.exit_on_error,
        strict_readiness=given.strict_readiness,
        reuse_http_port=given.reuse_http_port,
        reuse_grpc_port=given.reuse_grpc_port,
        header_forward_pattern=given.http_header_forward_pattern,
        log_level=_log_level(given),
    )


def _log_level(given: argparse.Namespace) -> str:
    if given.log_verbose:
        return "DEBUG"
    if given.log_info:
        return "INFO"
    return "WARNING" if given.log_warning else "ERROR"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="argosy serve", description="Serve a model repository.")
    _add_repository_flags(parser)
    _add_endpoint_flags(parser)
    add = parser.add_argument
    add("--id", default="argosy", help="the server's name in its metadata")
    add("--exit-timeout-secs", type=float, default=30.0, help="how long accepted requests may take at the end")
    add("--exit-on-error", type=boolean, default=True, help="end at start where a model fails to load")
    add("--strict-readiness", type=boolean, default=True, help="ready only when every wanted model is")
    add("--log-verbose", type=int, default=0, help="above 0: log everything")
    add("--log-info", type=boolean, default=True)
    add("--log-warning", type=boolean, default=True)
    add("--log-error", type=boolean, default=True)
    return parser


def _add_repository_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--model-repository",
        "--model-store",
        action="append",
        required=True,
        help="may be given several times",
    )
    modes = [mode.value for mode in ControlMode]
    add("--model-control-mode", choices=modes, default="none", help="who decides which models are loaded")
    add("--load-model", action="append", default=[], help="load at start in explicit mode; * is all")
    add("--repository-poll-secs", type=float, default=15.0, help="how often poll mode looks")
    add("--disable-auto-complete-config", action="store_true", help="take configurations as they are written")
    add(
        "--strict-model-config",
        type=boolean,
        dest="disable_auto_complete_config",
        help="the older name of the same",
    )
    add("--model-config-name", default="", help="use configs/<name>.pbtxt where it exists")
    add("--model-load-thread-count", type=int, default=4, help="how many models load at once")
    add("--model-load-timeout-secs", type=float, default=600.0, help="how long one instance may take to load")


def _add_endpoint_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        add(f"--allow-{name}", type=boolean, default=True)
        add(f"--{name}-port", type=int, default=port, help="0 takes any free one")
        add(f"--{name}-address", default="" if name == "metrics" else "0.0.0.0")
    add("--reuse-http-port", type=boolean, default=False)
    add("--reuse-grpc-port", type=boolean, default=False)
    add("--http-max-input-size", type=int, default=64 * 1024 * 1024, help="bytes, also after decompression")
    add("--http-header-forward-pattern", default="", help="headers that become request parameters")


def boolean(text: str) -> bool:
    """true/1/on and false/0/off, in any case, as tritonserver reads them."""
    lowered = text.lower()
    if lowered in ("true", "1", "on"):
        return True
    if lowered in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is not a boolean: use true or false")
