"""Configurations of models, as text and as JSON, checked as before a load."""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.target import Target
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import ConfigError, check, check_structure, normalize, parse_json, parse_text, to_json

_TESTS = Path(__file__).resolve().parents[2]


def text(data: bytes) -> None:
    """Read a config.pbtxt, or the argosy.pbtxt of a version, which is read the same way."""
    try:
        config = parse_text(data.decode("utf-8", "replace"))
    except ConfigError as error:
        assert "failed to read text proto from config.pbtxt" in str(error)
    else:
        _check(config)


def document(data: bytes) -> None:
    """Read the configuration of a load request."""
    try:
        config = parse_json(data.decode("utf-8", "replace"))
    except ConfigError as error:
        assert str(error).encode()
    else:
        _check(config)


def _check(config: ModelConfig) -> None:
    try:
        check_structure(config, "m")
        complete = normalize(config, "m", ("model.py",), (0,))
        check(complete, "m")
    except ConfigError as error:
        assert str(error)
    else:
        json.dumps(to_json(complete))


def _texts() -> Iterator[bytes]:
    for folder in ("models", "models_limits", "models_traced"):
        for path in sorted((_TESTS / folder).glob("*/config.pbtxt")):
            yield path.read_bytes()


def _documents() -> Iterator[bytes]:
    for content in _texts():
        yield json.dumps(to_json(parse_text(content.decode()))).encode()


TARGETS = [Target("config-text", text, _texts), Target("config-json", document, _documents)]
