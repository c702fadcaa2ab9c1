"""Language models whose files or configuration will not do, and what completes a configuration."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.language_model import configuration, pbtxt, save_tokenizer

from argosy_runtime.backends import transformers as backend
from argosy_runtime.errors import ServingError


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
    required = [tensor.name for tensor in config.input if not tensor.optional]
    assert required == ([] if tokenizer else ["input_ids", "request_output_len"])
    assert ("text_input" in [tensor.name for tensor in config.input]) == tokenizer
    outputs = ["output_ids", "sequence_length"] + (["text_output"] if tokenizer else [])
    assert [made.name for made in config.output] == outputs
