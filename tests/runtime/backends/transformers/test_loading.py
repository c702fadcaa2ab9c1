"""Language models whose files or configuration will not do, and what completes a configuration."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.language_model import configuration, pbtxt, save_tokenizer

from argosy_runtime.backends import transformers as backend
from argosy_runtime.errors import ServingError
from argosy_runtime.language import is_language_model


def test_a_missing_model_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(pbtxt())
    with pytest.raises(ServingError, match=r"unable to find '.*/lm/1/config\.json' for model 'lm'"):
        backend.load(folder.spec(), host)


def test_missing_weights_are_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(pbtxt())
    configuration().save_pretrained(folder.version_dir)
    with pytest.raises(ServingError, match=r"failed to load '.*/lm/1' for model 'lm'"):
        backend.load(folder.spec(), host)


def test_a_batch_dimension_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(pbtxt() + "max_batch_size: 4")
    configuration().save_pretrained(folder.version_dir)
    with pytest.raises(ServingError, match="max_batch_size must be 0 for backend 'transformers'"):
        backend.complete_config(folder.model_dir, folder.version_dir, folder.config)


@pytest.mark.parametrize("tokenizer", [False, True])
def test_the_configuration_is_completed(model_folder: Callable[[str], Any], tokenizer: bool) -> None:
    folder = model_folder('name: "lm"')
    configuration().save_pretrained(folder.version_dir)
    if tokenizer:
        save_tokenizer(folder.version_dir)
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert config.model_transaction_policy.decoupled
    assert config.max_batch_size == 0
    assert all(tensor.optional for tensor in config.input)
    inputs, outputs = ({tensor.name for tensor in side} for side in (config.input, config.output))
    assert inputs >= {"input_ids", "request_output_len", "sampling_parameters", "random_seed", "min_tokens"}
    assert outputs >= {"output_ids", "sequence_length", "finish_reason", "logprobs", "num_cached_tokens", "index"}
    assert ({"text_input", "messages"} <= inputs, "text_output" in outputs) == (tokenizer, tokenizer)
    assert is_language_model(config) == tokenizer


def test_tensors_that_a_configuration_declares_stay(model_folder: Callable[[str], Any]) -> None:
    declared = 'name: "lm" input { name: "input_ids" data_type: TYPE_INT32 dims: [ 1, -1 ] reshape { shape: -1 } }'
    folder = model_folder(declared)
    configuration().save_pretrained(folder.version_dir)
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert list(config.input) == list(folder.config.input)
    assert config.output
