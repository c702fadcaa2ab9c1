"""What a request leaves out means the same to every backend."""

from typing import Any

import pytest

from argosy_runtime.backends.tensorrtllm import sampling as tensorrtllm
from argosy_runtime.backends.transformers import generation as transformers
from argosy_runtime.backends.vllm.requests.sampling import sampling_arguments
from argosy_runtime.errors import ServingError
from argosy_runtime.language import GenerationRequest, Sampling, Tokens
from argosy_runtime.language.defaults import declared_defaults, with_defaults

VOCABULARY = 256
FILE = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_new_tokens": 40, "do_sample": True, "eos_token_id": 3}


def of_vllm(sampling: Sampling) -> dict[str, Any]:
    return sampling_arguments(sampling, 10, 100)


def of_tensorrtllm(sampling: Sampling) -> dict[str, Any]:
    abilities = tensorrtllm.Abilities(VOCABULARY, 100, frozenset(), True, "", False, True)
    return tensorrtllm.generation(_request(sampling), [1] * 10, abilities).settings[0]


def of_transformers(sampling: Sampling) -> dict[str, Any]:
    abilities = transformers.Abilities(VOCABULARY, 100, frozenset(), True, True, True)
    return transformers.generation(_request(sampling), [1] * 10, abilities, 0).settings[0]


def _request(sampling: Sampling) -> GenerationRequest:
    return GenerationRequest("m", "", Tokens([1]), False, sampling, ("output_ids",))


def _drawing(arguments: dict[str, Any]) -> tuple[float, float, int]:
    """Return the temperature, top_p and top_k that an engine's arguments mean; a temperature of 0 for the likeliest."""
    top_k = arguments.get("top_k") or VOCABULARY
    if top_k == 1 or arguments.get("temperature") == 0:
        return 0.0, 1.0, VOCABULARY
    return arguments["temperature"], arguments.get("top_p", 1.0), min(top_k, VOCABULARY)


@pytest.mark.parametrize(
    ("file", "request_", "expected"),
    [
        ({}, {}, (1.0, 1.0, VOCABULARY)),
        ({}, {"top_p": 0.5}, (1.0, 0.5, VOCABULARY)),
        ({}, {"temperature": 0}, (0.0, 1.0, VOCABULARY)),
        ({}, {"temperature": 1e-9}, (0.0, 1.0, VOCABULARY)),
        ({}, {"top_k": 1, "temperature": 5}, (0.0, 1.0, VOCABULARY)),
        (FILE, {}, (0.6, 0.9, 20)),
        (FILE, {"top_p": 0.5, "top_k": 0}, (0.6, 0.5, VOCABULARY)),
        (FILE, {"temperature": 2.0}, (2.0, 0.9, 20)),
        ({"temperature": 0.0}, {}, (0.0, 1.0, VOCABULARY)),
    ],
)
def test_every_backend_draws_alike(file, request_, expected):
    sampling = with_defaults(Sampling(**request_), declared_defaults(file))
    for backend in (of_vllm, of_tensorrtllm):
        assert _drawing(backend(sampling)) == expected
    settings = of_transformers(sampling)
    if expected[0]:
        assert (settings["temperature"], settings["top_p"], settings["top_k"]) == expected
    assert ("key" in settings) is bool(expected[0])


def test_defaults_have_the_contracts_names():
    assert declared_defaults(FILE) == {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_tokens": 40}
    assert declared_defaults({"temperature": None, "num_beams": 1}) == {}
    with pytest.raises(ServingError, match="'top_p' is 3, expected more than 0 and at most 1"):
        declared_defaults({"top_p": 3})


def test_a_request_that_leaves_nothing_out_is_as_it_was():
    sampling = Sampling(temperature=0.5, top_p=0.5, top_k=5)
    assert with_defaults(sampling, declared_defaults(FILE)) is sampling
