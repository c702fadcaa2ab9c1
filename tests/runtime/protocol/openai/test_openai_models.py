"""Models as clients name them, and errors of models in OpenAI's form."""

import json

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, invalid, not_found, unavailable
from argosy_runtime.protocol.openai.errors import encode_error, from_serving
from argosy_runtime.protocol.openai.models import encode_models, named_models


def config(adapters: str | None = None) -> ModelConfig:
    made = ModelConfig(name="base")
    if adapters is not None:
        made.parameters["adapters"].string_value = adapters
    return made


def test_adapters_are_models() -> None:
    models = named_models(config('[{"name": "pirate", "path": "/p", "weight": 1}, {"name": "poet", "path": "/q"}]'))
    assert [(model.name, model.base, model.adapter) for model in models] == [
        ("base", "base", ""),
        ("pirate", "base", "pirate"),
        ("poet", "base", "poet"),
    ]
    listed = json.loads(encode_models((model, 5) for model in models))
    assert listed["object"] == "list"
    assert listed["data"][0] == {"id": "base", "object": "model", "created": 5, "owned_by": "argosy"}
    assert listed["data"][1]["parent"] == "base"


def test_an_adapter_of_its_own_in_a_repository_names_its_base_model() -> None:
    adapter = ModelConfig(name="pirate", backend="adapter")
    adapter.parameters["base"].string_value = "base"
    (named,) = named_models(adapter)
    assert (named.base, named.adapter) == ("pirate", "")
    (document,) = json.loads(encode_models([(named, 5)]))["data"]
    assert (document["id"], document["parent"]) == ("pirate", "base")


@pytest.mark.parametrize("adapters", [None, "", "{", "{}", '["pirate"]', '[{"path": "/p"}]', '[{"name": 3}]'])
def test_a_parameter_that_lists_no_adapters(adapters: str | None) -> None:
    assert [model.name for model in named_models(config(adapters))] == ["base"]


def test_a_fingerprint_is_of_the_configuration() -> None:
    (one,), (other,) = named_models(config()), named_models(ModelConfig(name="base", backend="vllm"))
    assert one == named_models(config())[0]
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
    raised = from_serving(error)
    assert (raised.status, raised.kind, raised.param, raised.code) == (status, kind, param, code)
    assert bool(raised.retry_after) == (status in (429, 503))
    assert set(json.loads(encode_error(raised))["error"]) == {"message", "type", "param", "code"}


def test_every_kind_of_error_has_a_status() -> None:
    for kind in ErrorKind:
        assert 400 <= from_serving(ServingError(kind, "x")).status < 600
