"""Flags of features that are off: none of them ends the command line, and the log names each that was given."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from argosy_runtime.repository.options import ControlMode

from .tracing import writes_files


@dataclass(frozen=True, slots=True)
class Feature:
    """What a server may be without. `needs`: what turns it on, `flags`: those that nothing else reads.

    A flag with * at its end stands for all that begin so.
    """

    needs: str
    is_on: Callable[[argparse.Namespace], bool]
    flags: tuple[str, ...]


def _has_tls(*ports: str) -> Callable[[argparse.Namespace], bool]:
    return lambda values: any(
        getattr(values, f"{port}_use_ssl") or getattr(values, f"{port}_use_ssl_mutual") is not None for port in ports
    )


def _asks_clients(*ports: str) -> Callable[[argparse.Namespace], bool]:
    return lambda values: any(getattr(values, f"{port}_use_ssl_mutual") for port in ports)


def _speaks_http(values: argparse.Namespace) -> bool:
    """Return whether a port other than that of metrics speaks HTTP."""
    clouds = values.allow_sagemaker or values.allow_vertex_ai
    return bool(values.allow_http or clouds or values.openai_port is not None)


FEATURES: Final = (
    Feature(
        "--allow-http=true",
        lambda values: values.allow_http,
        ("http-port", "reuse-http-port", "http-header-forward-pattern"),
    ),
    Feature("--allow-http=true", _speaks_http, ("http-restricted-api", "http-use-ssl", "http-use-ssl-mutual")),
    Feature(
        "--allow-grpc=true", lambda values: values.allow_grpc, ("grpc-*", "reuse-grpc-port", "allow-grpc-reflection")
    ),
    Feature(
        "--allow-metrics=true",
        lambda values: values.allow_metrics,
        ("metrics-*", "allow-cpu-metrics", "allow-gpu-metrics"),
    ),
    Feature(
        "--allow-sagemaker=true",
        lambda values: values.allow_sagemaker,
        ("sagemaker-port", "sagemaker-safe-port-range"),
    ),
    Feature(
        "--allow-vertex-ai=true", lambda values: values.allow_vertex_ai, ("vertex-ai-port", "vertex-ai-default-model")
    ),
    Feature("--openai-port", lambda values: values.openai_port is not None, ("openai-address",)),
    # The metrics port takes the files of HTTP where it has none.
    Feature("--http-use-ssl=true", _has_tls("http", "metrics"), ("http-server-cert", "http-server-key")),
    Feature("--http-use-ssl-mutual=true", _asks_clients("http", "metrics"), ("http-root-cert",)),
    Feature("--grpc-use-ssl=true", _has_tls("grpc"), ("grpc-server-cert", "grpc-server-key")),
    Feature("--grpc-use-ssl-mutual=true", _asks_clients("grpc"), ("grpc-root-cert",)),
    Feature("--metrics-use-ssl=true", _has_tls("metrics"), ("metrics-server-cert", "metrics-server-key")),
    Feature("--metrics-use-ssl-mutual=true", _asks_clients("metrics"), ("metrics-root-cert",)),
    Feature(
        "--model-control-mode=poll",
        lambda values: values.model_control_mode == ControlMode.POLL,
        ("repository-poll-secs",),
    ),
    Feature("--load-on-demand=true", lambda values: values.load_on_demand, ("load-on-demand-timeout-secs",)),
    Feature("--drain-quiet-secs", lambda values: values.drain_quiet_secs > 0, ("drain-timeout-secs",)),
    Feature(
        "--allow-model-requirements=true",
        lambda values: values.allow_model_requirements,
        ("model-requirements-folder",),
    ),
    Feature(
        "--rate-limit=execution_count",
        lambda values: values.rate_limit == "execution_count",
        ("rate-limit-resource",),
    ),
    Feature("--trace-config=mode=triton", writes_files, ("trace-file", "trace-log-frequency")),
    Feature("a cache of another kind than local", lambda _: False, ("cache-directory",)),
)


def without_feature(parser: argparse.ArgumentParser, values: argparse.Namespace) -> tuple[str, ...]:
    """Return the given flags whose feature is off, each once, with what would turn it on."""
    present = [name for name in map(_name, parser._actions) if name and _is_present(parser, values, name)]
    off = [feature for feature in FEATURES if not feature.is_on(values)]
    reasons = {name: feature.needs for feature in reversed(off) for name in present if _matches(feature.flags, name)}
    return tuple([f"--{name} without {reasons[name]}" for name in present if name in reasons])


def _name(action: argparse.Action) -> str:
    return next((option.removeprefix("--") for option in action.option_strings if option.startswith("--")), "")


def _is_present(parser: argparse.ArgumentParser, values: argparse.Namespace, name: str) -> bool:
    """Return whether a flag has another value than its default, which may be the text of one."""
    field = name.replace("-", "_")
    return str(getattr(values, field, None)) != str(parser.get_default(field))


def _matches(flags: Sequence[str], name: str) -> bool:
    return any(name.startswith(flag[:-1]) if flag.endswith("*") else name == flag for flag in flags)
