"""The defaults of a model: those of its files, unless its parameters say otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.backends.requests import parameter

from argosy_runtime.backends.generation.defaults import model_defaults
from argosy_runtime.errors import ErrorKind, ServingError

FILE = {"temperature": 0.6, "repetition_penalty": 1.05, "eos_token_id": 3}


def defaults(folder: Any, host: Any, lacking: tuple[str, ...] = (), **values: Any) -> dict[str, Any]:
    for name, content in values.items():
        (folder.version_dir / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return model_defaults(folder.spec(), [Path("/missing"), folder.version_dir], lacking, host)


def config(**parameters: str) -> str:
    settings = "".join(parameter(key, value.replace('"', '\\"')) for key, value in parameters.items())
    return f'name: "lm" backend: "transformers" {settings}'


def test_the_file_for_generating_goes_before_the_models(model_folder, host):
    folder = model_folder(config())
    assert defaults(folder, host) == {}
    assert defaults(folder, host, config={"top_k": 7, "vocab_size": 64}) == {"top_k": 7}
    assert defaults(folder, host, generation_config=FILE) == {"temperature": 0.6, "repetition_penalty": 1.05}
    assert defaults(folder, host, generation_config="{") == {"top_k": 7}


def test_parameters_are_vllms(model_folder, host):
    override = {"override_generation_config": '{"temperature": 0, "max_new_tokens": 9}'}
    expected = {"temperature": 0, "repetition_penalty": 1.05, "max_tokens": 9}
    assert defaults(model_folder(config(**override)), host, generation_config=FILE) == expected


def test_an_override_of_null_takes_back_the_files(model_folder, host):
    override = {"override_generation_config": '{"temperature": null}'}
    assert defaults(model_folder(config(**override)), host, generation_config=FILE) == {"repetition_penalty": 1.05}


def test_a_model_may_have_no_defaults(model_folder, host):
    folder = model_folder(config(generation_config="vllm"))
    assert defaults(folder, host, generation_config=FILE) == {}


def test_what_the_backend_lacks_is_not_applied_and_logged(model_folder, host):
    folder = model_folder(config())
    assert defaults(folder, host, ("repetition_penalty",), generation_config=FILE) == {"temperature": 0.6}
    ((level, message),) = host.lines
    assert level == "warning"
    assert "generation_config has 'repetition_penalty', which backend 'transformers' lacks" in message


@pytest.mark.parametrize(
    ("parameters", "file", "expected"),
    [
        ({"generation_config": "/a"}, {}, "parameter 'generation_config' is '/a', expected auto or vllm"),
        ({"override_generation_config": "{"}, {}, "'override_generation_config' is not JSON"),
        ({"override_generation_config": "[]"}, {}, "'override_generation_config' is no JSON object"),
        (
            {"override_generation_config": '{"max_tokens": 9}'},
            {},
            "parameter 'override_generation_config' has 'max_tokens', expected temperature, .*, max_new_tokens$",
        ),
        (
            {"override_generation_config": '{"max_new_tokens": -9}'},
            {},
            "parameter 'override_generation_config': 'max_new_tokens' is -9, expected 0",
        ),
        ({}, {"temperature": -1}, "generation_config: .*'temperature' is -1, expected 0 or more"),
    ],
)
def test_what_cannot_be_a_default_is_refused(model_folder, host, parameters, file, expected):
    with pytest.raises(ServingError, match=f"model 'lm': .*{expected}") as error:
        defaults(model_folder(config(**parameters)), host, generation_config=file)
    assert error.value.kind is ErrorKind.INVALID_ARG
