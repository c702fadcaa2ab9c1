"""The parser of all flags that have an effect."""

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from argosy_common.idle import seconds
from argosy_runtime.frontends.grpc.flags import add_flags as add_grpc_flags
from argosy_runtime.frontends.http.wire.timeouts import Timeouts
from argosy_runtime.frontends.restrictions import CONTROL_TOKEN_FLAG
from argosy_runtime.repository.options import ControlMode
from argosy_runtime.telemetry.log_settings import DEFAULT_FORMAT, FORMATS

from .clouds import add_cloud_flags, is_vertex_ai
from .openai import add_openai_flags
from .scheduling import add_scheduling_flags
from .tls import add_tls_flags
from .tracing import add_trace_flags
from .values import (
    backend_setting,
    boolean,
    control_token,
    duration,
    gpu_limit,
    grpc_restriction,
    header_pattern,
    http_restriction,
    log_file,
    memory_bytes,
    metrics_setting,
    milliseconds,
    natural,
    port,
    repository,
    size_above_zero,
    threads,
    verbosity,
)

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def argument_parser(environment: Mapping[str, str] = _NO_VARIABLES) -> argparse.ArgumentParser:
    """Return the parser of all flags that have an effect; variables of the `environment` change defaults."""
    usage = "%(prog)s --model-repository=FOLDER [--FLAG=VALUE ...]; --help describes all flags"
    parser = argparse.ArgumentParser(prog="argosy serve", usage=usage, description="Serve a model repository.")
    _add_repository_flags(parser, environment)
    _add_endpoint_flags(parser, environment)
    add_cloud_flags(parser, environment)
    add_openai_flags(parser)
    add_grpc_flags(parser, boolean, natural)
    add_scheduling_flags(parser)
    add_tls_flags(parser, boolean)
    add_trace_flags(parser)
    add = parser.add_argument
    add("--id", default="argosy", help="the server's name in its metadata")
    add("--exit-timeout-secs", type=duration, default=30.0, help="how long accepted requests may take at the end")
    drain = "after SIGTERM, go on answering until none is open and none has come for so long; 0 ends at once"
    add("--drain-quiet-secs", type=seconds, default=0.0, help=drain)
    add("--drain-timeout-secs", type=seconds, default=60.0, help="for how long at most, if requests go on")
    add("--exit-on-error", type=boolean, default=True, help="end at start where a model fails to load")
    add("--strict-readiness", type=boolean, default=True, help="ready only when every wanted model is")
    add("--log-verbose", type=verbosity, default=0, help="above 0, or true: log everything")
    add("--log-info", type=boolean, default=True)
    add("--log-warning", type=boolean, default=True)
    add("--log-error", type=boolean, default=True)
    add("--log-file", type=log_file, metavar="FILE", help="lines are added to it in place of the console")
    add("--log-format", choices=FORMATS, default=DEFAULT_FORMAT, help="local times, or UTC as ISO8601 has it")
    return parser


def _add_repository_flags(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add = parser.add_argument
    add(
        "--model-repository",
        "--model-store",
        action="append",
        required="AIP_STORAGE_URI" not in environment,
        type=repository,
        help="a folder of models; may be given several times",
    )
    modes = [mode.value for mode in ControlMode]
    decides = "which models are loaded: all, those that changed, or those that clients load"
    add("--model-control-mode", type=str.lower, choices=modes, default="none", help=decides)
    add("--load-model", action="append", default=[], help="load at start in explicit mode; * is all")
    add("--repository-poll-secs", type=duration, default=15.0, help="how often poll mode looks")
    add("--disable-auto-complete-config", action="store_true", help="take configurations as they are written")
    add(
        "--strict-model-config",
        type=boolean,
        default=False,
        help="the older name of the same",
    )
    usage = "<backend>,<setting>=<value>"
    add("--backend-config", action="append", default=[], type=backend_setting, metavar=usage)
    add("--model-config-name", default="", help="use configs/<name>.pbtxt where it exists")
    add("--model-load-thread-count", type=threads, default=4, help="how many models load at once")
    add("--model-load-retry-count", type=natural, default=0, help="how often a version that fails is loaded again")
    _add_on_demand_flags(parser)
    most = "the part of a GPU's memory that may be in use when another model is loaded there"
    usage = "<device_id>:<fraction>"
    add("--model-load-gpu-limit", action="append", default=[], type=gpu_limit, metavar=usage, help=most)
    same = "each repository is a namespace, and models of several may have the same name"
    add("--model-namespacing", type=boolean, default=False, help=same)
    add("--model-load-timeout-secs", type=duration, default=600.0, help="how long one instance may take to load")
    install = "install the requirements.txt next to a model.py into an environment of its own"
    add("--allow-model-requirements", type=boolean, default=False, help=install)
    where = "where these environments are kept, ~/.cache/argosy/requirements by default; servers may share it"
    add("--model-requirements-folder", default="", metavar="FOLDER", help=where)


def _add_on_demand_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    on_demand = "in explicit mode, load a model of the repositories when the first request for it comes"
    add("--load-on-demand", type=boolean, default=False, help=on_demand)
    memory = "what models may use together, such as 16Gi, before idle ones give way to one that is loaded on demand"
    add("--model-memory-limit", type=memory_bytes, default=0, metavar="BYTES", help=memory)
    wait = "how long a request may wait for its model to be loaded on demand"
    add("--load-on-demand-timeout-secs", type=seconds, default=60.0, help=wait)


def _add_endpoint_flags(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add = parser.add_argument
    for name, default in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        add(f"--allow-{name}", type=boolean, default=name == "metrics" or not is_vertex_ai(environment))
        add(f"--{name}-port", type=port, default=default, help="0 takes any free one")
        add(f"--{name}-address", default="" if name == "metrics" else "0.0.0.0")
    for kind in ("cpu", "gpu"):
        add(f"--allow-{kind}-metrics", type=boolean, default=True)
    latencies = "counter_latencies, summary_latencies, histogram_latencies (true or false), summary_quantiles"
    usage = "<setting>=<value>"
    add("--metrics-config", action="append", default=[], type=metrics_setting, metavar=usage, help=latencies)
    add("--metrics-interval-ms", type=milliseconds, default=2000, help="how often CPUs and GPUs are measured")
    add("--reuse-http-port", type=boolean, default=False)
    add("--reuse-grpc-port", type=boolean, default=False)
    most, above_zero = "bytes, also after decompression", size_above_zero("--http-max-input-size")
    add("--http-max-input-size", type=above_zero, default=64 << 20, help=most)
    times = Timeouts()
    slow = "how long a request's head may take to come; 0 is for ever"
    add("--http-header-timeout-secs", type=seconds, default=times.head, help=slow)
    add("--http-body-timeout-secs", type=seconds, default=times.body, help="the same between two pieces of a body")
    idle = "the same between two requests of a connection, and for a client that does not read its answer"
    add("--http-idle-timeout-secs", type=seconds, default=times.idle, help=idle)
    shared = "whether clients may register shared memory, of the system or of a GPU, for inputs and outputs"
    add("--allow-client-shm", type=boolean, default=False, help=shared)
    for name in ("http", "grpc"):
        chosen = "headers with a match (RE2, in any case) become request parameters"
        add(f"--{name}-header-forward-pattern", type=header_pattern, default="", metavar="PATTERN", help=chosen)
    usage = "<api>,<api>…:<header>=<value>"
    add("--http-restricted-api", action="append", default=[], type=http_restriction, metavar=usage)
    add("--grpc-restricted-protocol", action="append", default=[], type=grpc_restriction, metavar=usage)
    secret = "only clients that send the token in this file load, unload, set logging and traces, or share memory"
    add(CONTROL_TOKEN_FLAG, default={}, type=control_token, metavar="FILE", help=secret)
    override = "whether loads may bring a configuration or files; true, but false with a control token"
    add("--allow-override-files", type=boolean, help=override)
