"""tritonserver's command line, as this server takes it."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_common.idle import IdlePeriod, seconds

from .frontends.grpc.flags import COMPRESSION, keepalive_rules, tls_files
from .frontends.grpc.flags import add_flags as add_grpc_flags
from .frontends.grpc.tls import TlsFiles
from .frontends.http.wire.timeouts import Timeouts
from .frontends.restrictions import CONTROL_TOKEN_FLAG, Api, Restriction, Restrictions, control_restrictions
from .http2 import KeepAliveRules
from .repository.options import BackendSetting, ControlMode, RepositoryOptions
from .telemetry.log_settings import DEFAULT_FORMAT, FORMATS, LogSettings

# tritonserver's flags that are accepted and change nothing here; the server logs them when it starts.
WITHOUT_EFFECT = frozenset(
    (
        "backend-directory",
        "buffer-manager-thread-count",
        "cache-config",
        "cache-directory",
        "allow-sagemaker",
        "allow-vertex-ai",
        "cuda-memory-pool-byte-size",
        "cuda-virtual-address-size",
        "enable-peer-access",
        "grpc-http2-max-pings-without-data",
        "grpc-infer-allocation-pool-size",
        "grpc-infer-thread-count",
        "grpc-max-response-pool-size",
        "host-policy",
        "http-thread-count",
        "metrics-config",
        "min-supported-compute-capability",
        "model-load-gpu-limit",
        "model-load-retry-count",
        "model-namespacing",
        "pinned-memory-pool-byte-size",
        "rate-limit",
        "rate-limit-resource",
        "repoagent-directory",
        "response-cache-byte-size",
        "sagemaker-port",
        "sagemaker-safe-port-range",
        "sagemaker-thread-count",
        "trace-config",
        "trace-count",
        "trace-file",
        "trace-level",
        "trace-log-frequency",
        "trace-rate",
        "vertex-ai-default-model",
        "vertex-ai-port",
        "vertex-ai-thread-count",
    )
)
_SWITCHES = {
    "allow-sagemaker": "SageMaker front end",
    "allow-vertex-ai": "Vertex AI front end",
    "model-namespacing": "namespaces of models: give each model a name of its own",
}
"""Those of the flags that may only switch something off, and what this server lacks."""
_GRPC_HEADER_PREFIX = "triton-grpc-protocol-"
_GROUPS = tuple(api for api in Api if api is not Api.MODEL_INDEX)
"""Triton's groups, in which the index is a part of the model repository."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of the command line. Times in seconds; a port of None turns its front end off."""

    repository: RepositoryOptions
    server_id: str
    http_address: str
    http_port: int | None
    grpc_address: str
    grpc_port: int | None
    grpc_keepalive: KeepAliveRules
    grpc_tls: TlsFiles | None
    grpc_compression: int
    metrics_address: str
    metrics_port: int | None
    cpu_metrics: bool
    gpu_metrics: bool
    metrics_interval: float
    max_input_size: int
    http_timeouts: Timeouts
    drain: IdlePeriod
    exit_timeout: float
    exit_on_error: bool
    strict_readiness: bool
    reuse_http_port: bool
    reuse_grpc_port: bool
    header_forward_pattern: str
    http_restricted: Restrictions
    grpc_restricted: Restrictions
    log: LogSettings
    without_effect: tuple[str, ...]


def parse(arguments: Sequence[str]) -> ServerOptions:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = argument_parser()
    values, rest = parser.parse_known_args(arguments)
    without_effect = _without_effect(parser, rest)
    return ServerOptions(
        repository=_repository_options(parser, values),
        server_id=values.id,
        http_address=values.http_address,
        http_port=values.http_port if values.allow_http else None,
        grpc_address=values.grpc_address,
        grpc_port=values.grpc_port if values.allow_grpc else None,
        grpc_keepalive=keepalive_rules(values),
        grpc_tls=tls_files(parser, values),
        grpc_compression=COMPRESSION[values.grpc_infer_response_compression_level],
        metrics_address=values.metrics_address or values.http_address,
        metrics_port=values.metrics_port if values.allow_metrics else None,
        cpu_metrics=values.allow_metrics and values.allow_cpu_metrics,
        gpu_metrics=values.allow_metrics and values.allow_gpu_metrics,
        metrics_interval=values.metrics_interval_ms / 1000,
        max_input_size=values.http_max_input_size,
        http_timeouts=Timeouts(
            values.http_header_timeout_secs, values.http_body_timeout_secs, values.http_idle_timeout_secs
        ),
        drain=IdlePeriod(values.drain_quiet_secs, values.drain_timeout_secs),
        exit_timeout=values.exit_timeout_secs,
        exit_on_error=values.exit_on_error,
        strict_readiness=values.strict_readiness,
        reuse_http_port=values.reuse_http_port,
        reuse_grpc_port=values.reuse_grpc_port,
        header_forward_pattern=values.http_header_forward_pattern,
        without_effect=(*without_effect, *without_effect_on_backends(values.backend_config)),
        http_restricted=_with_control(parser, values.http_restricted_api, values.control_token_file),
        grpc_restricted=_with_control(parser, values.grpc_restricted_protocol, values.control_token_file),
        log=_log_settings(values),
    )


def _without_effect(parser: argparse.ArgumentParser, rest: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that argparse did not parse, which must be among those that change nothing here."""
    idle, unknown = sort_out(rest)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    for name, value in idle:
        if missing := missing_here(name, value):
            parser.error(f"argument --{name}: {missing}")
    return tuple(dict.fromkeys(f"--{name}" for name, _ in idle))


def _repository_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> RepositoryOptions:
    if values.load_model and values.model_control_mode != ControlMode.EXPLICIT:
        parser.error("--load-model can only be used with --model-control-mode=explicit")
    overrides = values.allow_override_files
    return RepositoryOptions(
        paths=tuple(Path(path) for path in values.model_repository),
        control_mode=ControlMode(values.model_control_mode),
        startup_models=tuple(values.load_model),
        poll_seconds=values.repository_poll_secs,
        autocomplete=not values.disable_auto_complete_config,
        config_name=values.model_config_name,
        load_timeout=values.model_load_timeout_secs,
        unload_grace=values.exit_timeout_secs,
        parallel_loads=values.model_load_thread_count,
        backend_settings=tuple(values.backend_config),
        overrides=not values.control_token_file if overrides is None else overrides,
    )


def _log_settings(values: argparse.Namespace) -> LogSettings:
    return LogSettings(
        log_info=values.log_info,
        log_warning=values.log_warning,
        log_error=values.log_error,
        log_verbose_level=values.log_verbose,
        log_format=values.log_format,
        log_file=values.log_file or "",
    )


def _with_control(
    parser: argparse.ArgumentParser, declared: Sequence[Restrictions], control: Restrictions
) -> Restrictions:
    """Return the restrictions of the flags and those of the control token; no group can have both."""
    restrictions = merged(declared)
    if twice := sorted(control.keys() & restrictions.keys()):
        parser.error(f"'{twice[0]}' is restricted by {CONTROL_TOKEN_FLAG}: take it out of the other restrictions")
    return {**restrictions, **control}


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of all flags that have an effect."""
    parser = argparse.ArgumentParser(prog="argosy serve", description="Serve a model repository.")
    _add_repository_flags(parser)
    _add_endpoint_flags(parser)
    add_grpc_flags(parser, boolean)
    add = parser.add_argument
    add("--id", default="argosy", help="the server's name in its metadata")
    add("--exit-timeout-secs", type=float, default=30.0, help="how long accepted requests may take at the end")
    drain = "once told to end, go on answering until no request has come for so long; 0 ends at once"
    add("--drain-quiet-secs", type=seconds, default=0.0, help=drain)
    add("--drain-timeout-secs", type=seconds, default=60.0, help="for how long at most, if requests go on coming")
    add("--exit-on-error", type=boolean, default=True, help="end at start where a model fails to load")
    add("--strict-readiness", type=boolean, default=True, help="ready only when every wanted model is")
    add("--log-verbose", type=int, default=0, help="above 0: log everything")
    add("--log-info", type=boolean, default=True)
    add("--log-warning", type=boolean, default=True)
    add("--log-error", type=boolean, default=True)
    add("--log-file", type=log_file, metavar="FILE", help="lines are added to it in place of the console")
    add("--log-format", choices=FORMATS, default=DEFAULT_FORMAT, help="local times, or UTC as ISO8601 has it")
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
    usage = "<backend>,<setting>=<value>"
    add("--backend-config", action="append", default=[], type=backend_setting, metavar=usage)
    add("--model-config-name", default="", help="use configs/<name>.pbtxt where it exists")
    add("--model-load-thread-count", type=int, default=4, help="how many models load at once")
    add("--model-load-timeout-secs", type=float, default=600.0, help="how long one instance may take to load")


def _add_endpoint_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        add(f"--allow-{name}", type=boolean, default=True)
        add(f"--{name}-port", type=int, default=port, help="0 takes any free one")
        add(f"--{name}-address", default="" if name == "metrics" else "0.0.0.0")
    for kind in ("cpu", "gpu"):
        add(f"--allow-{kind}-metrics", type=boolean, default=True)
    add("--metrics-interval-ms", type=milliseconds, default=2000, help="how often CPUs and GPUs are measured")
    add("--reuse-http-port", type=boolean, default=False)
    add("--reuse-grpc-port", type=boolean, default=False)
    add("--http-max-input-size", type=int, default=64 * 1024 * 1024, help="bytes, also after decompression")
    times = Timeouts()
    slow = "how long a request's head may take to come; 0 is for ever"
    add("--http-header-timeout-secs", type=seconds, default=times.head, help=slow)
    add("--http-body-timeout-secs", type=seconds, default=times.body, help="the same between two pieces of a body")
    idle = "the same between two requests of a connection, and for a client that does not read its answer"
    add("--http-idle-timeout-secs", type=seconds, default=times.idle, help=idle)
    add("--http-header-forward-pattern", default="", help="headers that become request parameters")
    usage = "<api>,<api>…:<header>=<value>"
    add("--http-restricted-api", action="append", default=[], type=http_restriction, metavar=usage)
    add("--grpc-restricted-protocol", action="append", default=[], type=grpc_restriction, metavar=usage)
    secret = "only clients that send the token in this file load, unload, set logging and traces, or share memory"
    add(CONTROL_TOKEN_FLAG, default={}, type=control_token, metavar="FILE", help=secret)
    override = "whether loads may bring a configuration or files; true, but false with a control token"
    add("--allow-override-files", type=boolean, help=override)


def sort_out(rest: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split what argparse did not parse into tritonserver's flags without effect, with their values, and the rest."""
    idle: list[tuple[str, str]] = []
    unknown: list[str] = []
    takes_next = False
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in WITHOUT_EFFECT:
            idle.append((name, value))
            takes_next = not equals
        elif takes_next and not word.startswith("--"):
            idle[-1] = (idle[-1][0], word)
            takes_next = False
        else:
            unknown.append(word)
    return idle, unknown


def missing_here(name: str, value: str) -> str:
    """Return the message for a flag that requests what this server does not have; empty where it requests nothing."""
    if name in _SWITCHES and value.lower() not in ("false", "0", "off"):
        return f"this server has no {_SWITCHES[name]}; leave the flag out, or set it to false"
    setting, _, level = value.rpartition("=") if name == "trace-config" else ("level", "", value)
    if name in ("trace-config", "trace-level") and setting == "level" and level.upper() != "OFF":
        return f"this server traces nothing, so the level is OFF and not {level!r}; leave the flag out"
    return ""


def backend_setting(text: str) -> BackendSetting:
    """Parse `<backend>,<setting>=<value>`, or `<setting>=<value>` for all backends."""
    try:
        return BackendSetting.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def without_effect_on_backends(settings: Sequence[BackendSetting]) -> list[str]:
    """Return the flags of the settings that change nothing here."""
    idle = [setting for setting in settings if not setting.acts]
    return [f"--backend-config={setting.backend and setting.backend + ','}{setting.name}" for setting in idle]


def http_restriction(text: str) -> Restrictions:
    """Parse `<api>,<api>…:<header>=<value>`: those groups of the API require that header."""
    groups, colon, pair = text.partition(":")
    header, equals, value = pair.partition("=")
    if not (colon and equals and header):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form <api>,<api>:<header>=<value>")
    groups_here = [api.value for api in _GROUPS]
    names = [name.strip() for name in groups.split(",")]
    if wrong := [name for name in names if name not in groups_here]:
        raise argparse.ArgumentTypeError(f"'{wrong[0]}' is no group of the API; they are {', '.join(groups_here)}")
    if Api.MODEL_REPOSITORY in names:
        names.append(Api.MODEL_INDEX)
    return {Api(name): Restriction(header, value) for name in names}


def control_token(text: str) -> Restrictions:
    """Read the control token in a file; a file and not a value, since others see a process' command line."""
    try:
        token = Path(text).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be read: {error}") from None
    if not _TOKEN.fullmatch(token):
        raise argparse.ArgumentTypeError(
            f"{text!r} holds no token: at least 16 letters, digits or any of . _ ~ + / - are needed, and nothing else"
        )
    return control_restrictions(token)


def grpc_restriction(text: str) -> Restrictions:
    """Parse the same for gRPC, where the metadata's key is a prefix and the header."""
    return {
        api: Restriction(_GRPC_HEADER_PREFIX + restriction.header, restriction.value)
        for api, restriction in http_restriction(text).items()
    }


def merged(restrictions: Sequence[Restrictions]) -> Restrictions:
    """Merge the restrictions of several flags; where two name one group, the last one counts."""
    return {api: restriction for of_flag in restrictions for api, restriction in of_flag.items()}


def log_file(text: str) -> str:
    """Return a file's path once it can be opened for appending."""
    try:
        with Path(text).open("a", encoding="utf-8"):
            return text
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {error.strerror}") from None


def milliseconds(text: str) -> int:
    """Parse a number of milliseconds, at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of milliseconds above 0")
    return int(text)


def boolean(text: str) -> bool:
    """Parse true/1/on and false/0/off, in any case, as tritonserver does."""
    lowered = text.lower()
    if lowered in ("true", "1", "on"):
        return True
    if lowered in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is not a boolean: use true or false")
