"""Flags of features that are off: they are named, and the command line goes on."""

import argparse

import pytest

from argosy_runtime.flags import argument_parser, parse
from argosy_runtime.flags.features import FEATURES, without_feature

BASE = ["--model-repository=/models"]
ROUTES = {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}
FILES = ["--{}-server-cert=c", "--{}-server-key=k", "--{}-root-cert=r"]
OFF = {
    "--allow-http=true": ["--allow-http=false"],
    "--allow-grpc=true": ["--allow-grpc=false"],
    "--allow-metrics=true": ["--allow-metrics=false"],
}
"""What turns off a feature that is on by default."""
ON = {
    "--openai-port": ["--openai-port=0"],
    "--drain-quiet-secs": ["--drain-quiet-secs=1"],
    "--trace-config=mode=triton": [],
    **{
        f"--{port}-use-ssl{mutual}=true": [f"--{port}-use-ssl{mutual}=true", *[file.format(port) for file in FILES]]
        for port in ("http", "grpc", "metrics")
        for mutual in ("", "-mutual")
    },
}
VALUES = {
    "metrics-config": "summary_latencies=true",
    "rate-limit-resource": "R:2",
    "http-restricted-api": "health:key=value",
    "grpc-restricted-protocol": "health:key=value",
    "grpc-infer-response-compression-level": "high",
    "sagemaker-safe-port-range": "8000-9000",
    "sagemaker-port": "8001",
}
NEEDED = {
    f"{port}-use-ssl{mutual}": ON[f"--{port}-use-ssl-mutual=true"][1:]
    for port in ("http", "grpc", "metrics")
    for mutual in ("", "-mutual")
}


def _flags() -> list[tuple[str, str]]:
    """Return every flag of a feature with what the feature needs."""
    names = [option.removeprefix("--") for action in argument_parser()._actions for option in action.option_strings]
    return [
        (name, feature.needs)
        for feature in FEATURES
        for flag in feature.flags
        for name in names
        if (name.startswith(flag[:-1]) if flag.endswith("*") else name == flag)
    ]


def _word(name: str) -> str:
    """Return a flag with a value that is not its default."""
    parser = argument_parser()
    default = parser.get_default(name.replace("-", "_"))
    value = {True: "false", False: "true"}.get(default, "7") if isinstance(default, bool) else "7"
    return f"--{name}={VALUES.get(name, 'true' if name.endswith('mutual') else value)}"


@pytest.mark.parametrize(("name", "needs"), _flags())
def test_a_flag_whose_feature_is_off_is_named_with_what_turns_it_on(name: str, needs: str) -> None:
    off = OFF.get(needs, ["--trace-config=mode=opentelemetry"] if "trace" in needs else [])
    words = [*BASE, *off, *NEEDED.get(name, []), _word(name)]
    assert f"--{name} without {needs}" in parse(words, ROUTES).without_effect


@pytest.mark.parametrize(("name", "needs"), [row for row in _flags() if row[0] != "cache-directory"])
def test_a_flag_whose_feature_is_on_is_not_named(name: str, needs: str) -> None:
    words = [*BASE, *ON.get(needs, [needs]), *NEEDED.get(name, []), _word(name)]
    if needs == "--load-on-demand=true":
        words.append("--model-control-mode=explicit")
    assert f"--{name} without {needs}" not in parse(words, ROUTES).without_effect


def test_defaults_are_not_named() -> None:
    assert parse(BASE).without_effect == ()
    assert parse([*BASE, "--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"]).without_effect == ()


def test_the_files_of_http_are_used_by_a_metrics_port_without_its_own() -> None:
    words = [*BASE, "--metrics-use-ssl=true", "--http-server-cert=c", "--http-server-key=k"]
    assert parse(words).without_effect == ()


OTHERS_OF_HTTP = {"http-address", "http-max-input-size", "http-server-cert", "http-server-key", "http-root-cert"}
OTHERS_OF_HTTP |= {f"http-{part}-timeout-secs" for part in ("header", "body", "idle")}
"""Flags of HTTP that the ports of metrics and gRPC have, too."""


def test_flags_of_http_are_named_where_no_port_reads_them() -> None:
    options = [option for action in argument_parser()._actions for option in action.option_strings]
    names = {option.removeprefix("--") for option in options if option.startswith("--http-")} - OTHERS_OF_HTTP
    assert {"http-restricted-api", "http-use-ssl", "http-header-forward-pattern"} <= names
    for name in sorted(names):
        words = [*BASE, "--allow-http=false", *NEEDED.get(name, []), _word(name)]
        assert f"--{name} without --allow-http=true" in parse(words).without_effect


@pytest.mark.parametrize("port", ["--openai-port=1", "--allow-sagemaker=true", "--allow-vertex-ai=true"])
def test_other_ports_of_http_have_its_tls_and_closed_groups(port: str) -> None:
    words = ["--allow-http=false", port, "--http-restricted-api=health:key=value", *ON["--http-use-ssl-mutual=true"]]
    assert parse([*BASE, *words], ROUTES).without_effect == ()


def test_every_name_of_a_feature_is_a_flag() -> None:
    parser = argument_parser()
    names = {option.removeprefix("--") for action in parser._actions for option in action.option_strings}
    assert {flag for feature in FEATURES for flag in feature.flags if not flag.endswith("*")} <= names
    assert without_feature(parser, argparse.Namespace(**vars(parser.parse_args(BASE)))) == ()
