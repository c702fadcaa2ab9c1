"""The options of the command line, read from its flags."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_common.idle import IdlePeriod
from argosy_runtime.backends.environments.requirements import default_folder
from argosy_runtime.frontends.grpc.flags import COMPRESSION, keepalive_rules
from argosy_runtime.frontends.http.clouds.sagemaker import SageMakerOptions
from argosy_runtime.frontends.http.clouds.vertex import VertexAiOptions
from argosy_runtime.frontends.http.openai.app import OpenAiOptions
from argosy_runtime.frontends.http.wire.timeouts import Timeouts
from argosy_runtime.frontends.restrictions import CONTROL_TOKEN_FLAG, Api, Restriction, Restrictions
from argosy_runtime.frontends.tls.files import TlsFiles
from argosy_runtime.http2 import KeepAliveRules
from argosy_runtime.repository.options import ControlMode, OnDemandOptions, RepositoryOptions
from argosy_runtime.telemetry.latencies.settings import MetricsSettings
from argosy_runtime.telemetry.log_settings import LogSettings
from argosy_runtime.telemetry.tracing.options import TraceOptions

from .clouds import sagemaker_options, vertex_ai_options
from .features import without_feature
from .ignored_values import wrong_value
from .openai import openai_options
from .parser import argument_parser
from .scheduling import cache_bytes, host_policies, rate_limits
from .tls import tls_files
from .tracing import trace_options
from .values import in_two_groups, repository
from .without_effect import sort_out, without_effect_on_backends


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of the command line. Times in seconds; a port of None turns its front end off.

    `openai` is None where OpenAI's API is not served; with an `openai_port` of None it is on the HTTP port.
    """

    repository: RepositoryOptions
    server_id: str
    http_address: str
    http_port: int | None
    http_tls: TlsFiles | None
    openai: OpenAiOptions | None
    openai_address: str
    openai_port: int | None
    sagemaker: SageMakerOptions | None
    vertex_ai: VertexAiOptions | None
    grpc_address: str
    grpc_port: int | None
    grpc_keepalive: KeepAliveRules
    grpc_tls: TlsFiles | None
    grpc_compression: int
    grpc_reflection: bool
    grpc_answer_while_stopping: bool
    metrics_address: str
    metrics_port: int | None
    metrics_tls: TlsFiles | None
    cpu_metrics: bool
    gpu_metrics: bool
    metrics_interval: float
    max_input_size: int
    client_shm: bool
    http_timeouts: Timeouts
    drain: IdlePeriod
    exit_timeout: float
    exit_on_error: bool
    strict_readiness: bool
    reuse_http_port: bool
    reuse_grpc_port: bool
    http_header_forward_pattern: str
    grpc_header_forward_pattern: str
    http_restricted: Restrictions
    grpc_restricted: Restrictions
    log: LogSettings
    pinned_bytes: int
    tracing: TraceOptions
    without_effect: tuple[str, ...]


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> ServerOptions:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = argument_parser(environment)
    values, rest = parser.parse_known_args(arguments)
    without_effect = _without_effect(parser, rest)
    tracing, not_tracing = trace_options(parser, values)
    http_restricted = _with_control(parser, "api", values.http_restricted_api, values.control_token_file)
    return ServerOptions(
        repository=_repository_options(parser, values, environment),
        server_id=values.id,
        http_address=values.http_address,
        http_port=values.http_port if values.allow_http else None,
        http_tls=tls_files(parser, values, "http"),
        openai=openai_options(parser, values, http_restricted),
        openai_address=values.openai_address or values.http_address,
        openai_port=values.openai_port,
        sagemaker=sagemaker_options(parser, values, environment),
        vertex_ai=vertex_ai_options(parser, values, environment),
        grpc_address=values.grpc_address,
        grpc_port=values.grpc_port if values.allow_grpc else None,
        grpc_keepalive=keepalive_rules(values),
        grpc_tls=tls_files(parser, values, "grpc"),
        grpc_compression=COMPRESSION[values.grpc_infer_response_compression_level],
        grpc_reflection=values.allow_grpc_reflection,
        grpc_answer_while_stopping=values.grpc_answer_while_stopping,
        metrics_address=values.metrics_address or values.http_address,
        metrics_port=values.metrics_port if values.allow_metrics else None,
        metrics_tls=tls_files(parser, values, "metrics"),
        cpu_metrics=values.allow_metrics and values.allow_cpu_metrics,
        gpu_metrics=values.allow_metrics and values.allow_gpu_metrics,
        metrics_interval=values.metrics_interval_ms / 1000,
        max_input_size=values.http_max_input_size,
        client_shm=values.allow_client_shm,
        http_timeouts=Timeouts(
            values.http_header_timeout_secs, values.http_body_timeout_secs, values.http_idle_timeout_secs
        ),
        drain=IdlePeriod(values.drain_quiet_secs, values.drain_timeout_secs),
        exit_timeout=values.exit_timeout_secs,
        exit_on_error=values.exit_on_error,
        strict_readiness=values.strict_readiness,
        reuse_http_port=values.reuse_http_port,
        reuse_grpc_port=values.reuse_grpc_port,
        http_header_forward_pattern=values.http_header_forward_pattern,
        grpc_header_forward_pattern=values.grpc_header_forward_pattern,
        without_effect=(
            *without_effect,
            *without_feature(parser, values),
            *without_effect_on_backends(values.backend_config),
            *not_tracing,
        ),
        http_restricted=http_restricted,
        grpc_restricted=_with_control(parser, "protocol", values.grpc_restricted_protocol, values.control_token_file),
        log=_log_settings(values),
        pinned_bytes=values.pinned_memory_pool_byte_size,
        tracing=tracing,
    )


def _without_effect(parser: argparse.ArgumentParser, rest: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that argparse did not parse, which must be among those that change nothing here."""
    ignored, unknown = sort_out(rest)
    if unknown:
        word = unknown[0]
        parser.error(f"unrecognized option '{word}'" if word.startswith("-") else f"Unexpected argument: {word}")
    for name, value in ignored:
        if problem := wrong_value(name, value):
            parser.error(f"argument --{name}: {problem}")
    return tuple(dict.fromkeys(f"--{name}" for name, _ in ignored))


def _repository_options(
    parser: argparse.ArgumentParser, values: argparse.Namespace, environment: Mapping[str, str]
) -> RepositoryOptions:
    if values.load_model and values.model_control_mode != ControlMode.EXPLICIT:
        parser.error("Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.")
    if values.load_on_demand and values.model_control_mode != ControlMode.EXPLICIT:
        parser.error("--load-on-demand can only be used with --model-control-mode=explicit")
    if values.model_memory_limit and not values.load_on_demand:
        parser.error("--model-memory-limit can only be used with --load-on-demand=true")
    if values.model_namespacing and values.load_on_demand:
        parser.error("--load-on-demand can only be used with --model-namespacing=false")
    overrides = values.allow_override_files
    return RepositoryOptions(
        paths=tuple(values.model_repository or [repository(environment["AIP_STORAGE_URI"])]),
        control_mode=ControlMode(values.model_control_mode),
        startup_models=tuple(values.load_model),
        poll_seconds=values.repository_poll_secs,
        autocomplete=not (values.disable_auto_complete_config or values.strict_model_config),
        config_name=values.model_config_name,
        namespaces=values.model_namespacing,
        load_timeout=values.model_load_timeout_secs,
        # A model that leaves may take as long for its requests as a server that ends.
        unload_grace=values.exit_timeout_secs + (values.drain_timeout_secs if values.drain_quiet_secs else 0.0),
        parallel_loads=values.model_load_thread_count,
        load_retries=values.model_load_retry_count,
        on_demand=_on_demand_options(values),
        backend_settings=tuple(values.backend_config),
        overrides=not values.control_token_file if overrides is None else overrides,
        cache_bytes=cache_bytes(parser, values),
        rate_limits=rate_limits(values),
        host_policies=host_policies(values.host_policy),
        gpu_limits=dict(values.model_load_gpu_limit),
        metrics=MetricsSettings.of(values.metrics_config),
        requirements=_requirements_folder(values),
    )


def _requirements_folder(values: argparse.Namespace) -> Path | None:
    """Return the folder of environments with models' requirements; None where models may not install any."""
    if not values.allow_model_requirements:
        return None
    return Path(values.model_requirements_folder).absolute() if values.model_requirements_folder else default_folder()


def _on_demand_options(values: argparse.Namespace) -> OnDemandOptions | None:
    if not values.load_on_demand:
        return None
    return OnDemandOptions(values.model_memory_limit, values.load_on_demand_timeout_secs)


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
    parser: argparse.ArgumentParser, feature: str, declared: Sequence[Restrictions], control: Restrictions
) -> Restrictions:
    """Return the restrictions of the flags and those of the control token; no group can have two.

    `feature` is api or protocol, as messages call them.
    """
    restrictions: dict[Api, Restriction] = {}
    for of_flag in declared:
        if twice := [api for api in of_flag if api in restrictions]:
            parser.error(in_two_groups(feature, twice[0]))
        restrictions.update(of_flag)
    if twice := sorted(control.keys() & restrictions.keys()):
        parser.error(f"'{twice[0]}' is restricted by {CONTROL_TOKEN_FLAG}: take it out of the other restrictions")
    return {**restrictions, **control}
