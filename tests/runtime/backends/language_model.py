"""A tiny language model with random weights, and what it is asked."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tests import tiny_llama, tiny_tokenizers
from tests.runtime.backends.requests import parameter

from argosy_runtime.messages import InferRequest, Tensor

VOCABULARY = 64
POSITIONS = 128
TYPES = {
    "input_ids": np.int32,
    "request_output_len": np.int32,
    "end_id": np.int32,
    "temperature": np.float32,
    "top_k": np.int32,
    "top_p": np.float32,
    "random_seed": np.uint64,
    "streaming": np.bool_,
    "stream": np.bool_,
    "exclude_input_in_output": np.bool_,
}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 4,
    "max_position_embeddings": POSITIONS,
}
SMALL = {"page_size": "4", "num_blocks": "64", "max_batch_tokens": "32"}


def configuration() -> transformers.LlamaConfig:
    return tiny_llama.configuration(VOCABULARY, **SIZES)


def save_model(folder: Path) -> None:
    tiny_llama.model(VOCABULARY, **SIZES).save_pretrained(folder)
    make_greedy(folder)


def make_greedy(folder: Path) -> None:
    """Let requests without a temperature get the likeliest tokens."""
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"temperature": 0.0}))


def generated(model: Any, prompt: Sequence[int], new: int) -> list[int]:
    """Return the tokens that the model itself generates greedily, on its own device."""
    ids = torch.tensor([prompt], device=model.device)
    made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False)
    tokens: list[int] = made[0, len(prompt) :].tolist()
    return tokens


def save_tokenizer(folder: Path) -> None:
    words = tiny_tokenizers.words((f"w{number}" for number in range(VOCABULARY)), "w0")
    tiny_llama.loaded(words).save_pretrained(folder)


def pbtxt(decoupled: bool = True, **parameters: str) -> str:
    settings = "".join(parameter(key, value) for key, value in {**SMALL, **parameters}.items())
    policy = f"model_transaction_policy {{ decoupled: {str(decoupled).lower()} }}"
    return f'name: "lm" backend: "transformers" {policy} {settings}'


def request(*input_ids: int, new: int = 4, **fields: Any) -> InferRequest:
    spec = {"input_ids": list(input_ids), "request_output_len": [new], **{k: [v] for k, v in fields.items()}}
    names = {np.int32: "INT32", np.float32: "FP32", np.uint64: "UINT64", np.bool_: "BOOL"}
    tensors = {name: Tensor(name, names[TYPES[name]], np.array(value, TYPES[name])) for name, value in spec.items()}
    return InferRequest("lm", tensors, id="r")


def text_request(text: str, sampling: object = None, **flags: bool) -> InferRequest:
    tensors = {"text_input": Tensor("text_input", "BYTES", np.array([text.encode()], np.object_))}
    if sampling is not None:
        encoded = sampling if isinstance(sampling, str) else json.dumps(sampling)
        array = np.array([encoded.encode()], np.object_)
        tensors["sampling_parameters"] = Tensor("sampling_parameters", "BYTES", array)
    for name, flag in flags.items():
        tensors[name] = Tensor(name, "BOOL", np.array([flag]))
    return InferRequest("lm", tensors)


def output(response: Any, name: str = "output_ids") -> list[Any]:
    assert response.error is None, response.error
    (result,) = [tensor for tensor in response.outputs if tensor.name == name]
    values: list[Any] = result.array.tolist()
    return values
