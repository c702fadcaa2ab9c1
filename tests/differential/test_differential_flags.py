"""No flag of tritonserver is unknown to `argosy serve`: it acts, has no effect, or is refused by its name."""

import re
from pathlib import Path

import pytest
from tests.differential.flag_cases import flags_in, help_of_triton, output_of_triton
from tests.differential.oracle import recorded

from argosy_runtime.flags import argument_parser, parse

NEWER = {
    "http-max-input-size": "integer",
    "grpc-infer-thread-count": "integer",
    "grpc-max-response-pool-size": "integer",
    "allow-client-shm": "boolean",
}
"""Those of later releases than the oracle's."""
VALUES = {
    "integer": ["2"],
    "float": ["6.0"],
    "boolean": ["true", "FALSE", "1", "off"],
    "<integer>:<integer>": ["0:1048576"],
    "<device_id>:<fraction>": ["0:0.5"],
    "<integer>-<integer>": ["9000-9010"],
}
TEXTS = {
    "id": "me",
    "log-format": "ISO8601",
    "model-control-mode": "EXPLICIT",
    "grpc-infer-response-compression-level": "High",
    "trace-level": "OFF",
    "trace-config": "level=OFF",
    "http-restricted-api": "health,metadata:key=value",
    "grpc-restricted-protocol": "health,metadata:key=value",
    "backend-config": "python,shm-default-byte-size=1048576",
    "cache-config": "local,size=1048576",
    "metrics-config": "summary_latencies=false",
    "host-policy": "gpu_0,numa-node=0",
    "rate-limit": "off",
    "rate-limit-resource": "R:2:0",
}
ROUTES = {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}
"""Variables without which Vertex AI's port is not served."""
FLAGS = {**recorded("flags")["help"], **NEWER}


def test_the_recorded_flags_are_tritons(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("triton_server")
    assert flags_in(help_of_triton()) == recorded("flags")["help"]


def _words(name: str, kind: str, tmp_path: Path) -> list[list[str]]:
    """Return command lines with this flag, together with those that it needs."""
    if not kind:
        return [[f"--{name}"]]
    text = str(tmp_path / "file") if name in ("log-file", "trace-file") else TEXTS.get(name, "text")
    needed = ["--model-control-mode=explicit"] if name == "load-model" else []
    if name.startswith("grpc-use-ssl"):
        needed = ["--grpc-server-cert=c", "--grpc-server-key=k", "--grpc-root-cert=r"]
    return [[*needed, f"--{name}={value}"] for value in VALUES.get(kind, [text])]


@pytest.mark.parametrize("name", sorted(FLAGS.keys() - {"help"}))
def test_a_flag_acts_or_has_no_effect_or_is_refused_by_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acting = {option for action in argument_parser()._actions for option in action.option_strings}
    for words in _words(name, FLAGS[name], tmp_path):
        try:
            options = parse(["--model-repository=/models", *words], ROUTES)
        except SystemExit:
            message = capsys.readouterr().err
            assert f"argument --{name}: this server" in message, message
        else:
            stated = {flag.partition("=")[0] for flag in options.without_effect}
            assert f"--{name}" in acting | stated


@pytest.mark.parametrize(
    "name", sorted(name for name, kind in FLAGS.items() if kind in ("integer", "float", "boolean"))
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--model-repository=/models", f"--{name}=many"])
    wrong = r"invalid value for bool option: " if FLAGS[name] == "boolean" else r"Invalid option value\. Got "
    assert re.search(rf"argument (--[a-z-]+/)?--{name}: {wrong}many", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("http-port", "many"),
        ("http-port", "99999999999"),
        ("model-load-retry-count", "99999999999"),
        ("exit-timeout-secs", "many"),
        ("response-cache-byte-size", "many"),
        ("rate-limit-resource", "R:many"),
    ],
)
def test_triton_refuses_a_number_in_the_same_words(
    name: str, value: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    request.getfixturevalue("triton_server")
    words = ["--model-repository=/models", f"--{name}={value}"]
    with pytest.raises(SystemExit):
        parse(words)
    reported = capsys.readouterr().err.strip().rpartition(": ")[2]
    assert reported in output_of_triton(*words)
