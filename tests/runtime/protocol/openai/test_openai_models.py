"""Models as clients name them, and errors of models in OpenAI's form."""

import json

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, invalid, not_found, unavailable
from argosy_runtime.protocol.openai.errors import ParameterNames, encode_error, from_serving
from argosy_runtime.protocol.openai.models import NamedModel, encode_models


def test_an_adapter_names_its_base_model() -> None:
    adapter = ModelConfig(name="pirate", backend="adapter")
    adapter.parameters["base"].string_value = "base"
    models = [NamedModel.of(ModelConfig(name="base")), NamedModel.of(adapter)]
    listed = json.loads(encode_models((model, 5) for model in models))
    assert listed["object"] == "list"
    assert listed["data"] == [
        {"id": "base", "object": "model", "created": 5, "owned_by": "argosy"},
        {"id": "pirate", "object": "model", "created": 5, "owned_by": "argosy", "parent": "base"},
    ]


def test_a_fingerprint_is_of_the_configuration() -> None:
    one, other = NamedModel.of(ModelConfig(name="base")), NamedModel.of(ModelConfig(name="base", backend="vllm"))
    assert one == NamedModel.of(ModelConfig(name="base"))
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("error", "status", "kind", "param", "code"),
    [
        (invalid("no"), 400, "invalid_request_error", None, None),
        (invalid("sampling_parameters: 'min_p' is 7"), 400, "invalid_request_error", "min_p", "invalid_value"),
        (
            invalid("model 'm': backend 'b' has no 'logit_bias'; leave it out"),
            400,
            "invalid_request_error",
            "logit_bias",
            "unsupported_parameter",
        ),
        (
            invalid("maximum context length is 5 tokens"),
            400,
            "invalid_request_error",
            "messages",
            "context_length_exceeded",
        ),
        (not_found("no such adapter"), 404, "invalid_request_error", "model", "model_not_found"),
        (unavailable("loading"), 503, "server_error", None, "service_unavailable"),
        (unavailable("full", FailureReason.REJECTED), 429, "rate_limit_error", None, "rate_limit_exceeded"),
        (ServingError(ErrorKind.INTERNAL, "broke"), 500, "server_error", None, None),
        (ServingError(ErrorKind.UNSUPPORTED, "no"), 400, "invalid_request_error", None, "unsupported"),
    ],
)
def test_errors_of_models(error: ServingError, status: int, kind: str, param: str | None, code: str | None) -> None:
    raised = from_serving(error, ParameterNames("messages"))
    assert (raised.status, raised.kind, raised.param, raised.code) == (status, kind, param, code)
    assert bool(raised.retry_after) == (status in (429, 503))
    assert set(json.loads(encode_error(raised))["error"]) == {"message", "type", "param", "code"}


def test_every_kind_of_error_has_a_status() -> None:
    for kind in ErrorKind:
        assert 400 <= from_serving(ServingError(kind, "x")).status < 600
