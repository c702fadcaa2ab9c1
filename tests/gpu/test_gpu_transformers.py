"""The transformers backend on a GPU: its paged cache and streams give what the model itself generates."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from tests.runtime.backends.language_model import generated, output, pbtxt, request, save_model

from argosy_runtime.backends import transformers as backend

PROMPTS = [(1, 2, 3), (9,), tuple(range(20))]


@pytest.mark.parametrize("streaming", [False, True])
def test_tokens_are_those_of_the_model_itself(
    gpu: torch.device, model_folder: Callable[[str], Any], host: Any, responder: Any, streaming: bool
) -> None:
    folder = model_folder(pbtxt())
    save_model(folder.version_dir)
    instance = backend.load(folder.spec(kind="KIND_GPU"), host)
    try:
        instance.execute([request(*prompt, new=6, streaming=streaming) for prompt in PROMPTS], responder)
        responder.wait_for_final(*range(len(PROMPTS)))
    finally:
        instance.close()
    model = transformers.LlamaForCausalLM.from_pretrained(folder.version_dir).to(gpu)
    for index, prompt in enumerate(PROMPTS):
        tokens = [token for response in responder.of(index) for token in output(response)]
        assert tokens == generated(model, prompt, 6)
