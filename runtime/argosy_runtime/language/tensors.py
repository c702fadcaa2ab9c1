"""The tensors of language models, by name, and the completion of configurations by them.

All inputs are optional, and none has a batch dimension. A response has the delta of one choice (of `n`) or, where a
request does not stream, of all choices: then each output with the dimension -1 has an element per choice, and
`output_ids` has the tokens of all choices, one choice after the other, each `sequence_length` long.
"""

from collections.abc import Mapping
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import config_type

Tensors = Mapping[str, tuple[str, tuple[int, ...]]]
"""Datatypes and dimensions by name."""

TEXT_INPUT: Final = "text_input"
INPUT_IDS: Final = "input_ids"
MESSAGES: Final = "messages"
TEXT_OUTPUT: Final = "text_output"
OUTPUT_IDS: Final = "output_ids"

PROMPTS: Final = (TEXT_INPUT, INPUT_IDS, MESSAGES)
"""The inputs of which a request has exactly one."""

INPUTS: Final[Tensors] = {
    TEXT_INPUT: ("BYTES", (1,)),
    INPUT_IDS: ("INT32", (-1,)),
    MESSAGES: ("BYTES", (1,)),
    "stream": ("BOOL", (1,)),
    "sampling_parameters": ("BYTES", (1,)),
    "exclude_input_in_output": ("BOOL", (1,)),
    "return_finish_reason": ("BOOL", (1,)),
    "return_cumulative_logprob": ("BOOL", (1,)),
    "return_logprobs": ("BOOL", (1,)),
    "return_num_input_tokens": ("BOOL", (1,)),
    "return_num_output_tokens": ("BOOL", (1,)),
    "return_num_cached_tokens": ("BOOL", (1,)),
    "return_token_ids": ("BOOL", (1,)),
}
"""Inputs of Triton's vLLM backend, and those that it lacks: tokens, chats, cached tokens."""

PLAIN_INPUTS: Final[Tensors] = {
    "max_tokens": ("INT32", (1,)),
    "request_output_len": ("INT32", (1,)),
    "end_id": ("INT32", (1,)),
    "pad_id": ("INT32", (1,)),
    "streaming": ("BOOL", (1,)),
    "temperature": ("FP32", (1,)),
    "top_k": ("INT32", (1,)),
    "top_p": ("FP32", (1,)),
    "random_seed": ("UINT64", (1,)),
    "seed": ("UINT64", (1,)),
    "stop_words": ("BYTES", (-1,)),
    "bad_words": ("BYTES", (-1,)),
    "min_length": ("INT32", (1,)),
    "min_tokens": ("INT32", (1,)),
    "repetition_penalty": ("FP32", (1,)),
    "presence_penalty": ("FP32", (1,)),
    "frequency_penalty": ("FP32", (1,)),
    "beam_width": ("INT32", (1,)),
    "num_return_sequences": ("INT32", (1,)),
    "lora_name": ("BYTES", (1,)),
}
"""Parameters of sampling as tensors of their own, as clients of TensorRT-LLM's models send them."""

OUTPUTS: Final[Tensors] = {
    TEXT_OUTPUT: ("BYTES", (-1,)),
    OUTPUT_IDS: ("INT32", (-1,)),
    "sequence_length": ("INT32", (-1,)),
    "finish_reason": ("BYTES", (-1,)),
    "stop_reason": ("BYTES", (-1,)),
    "cumulative_logprob": ("FP32", (-1,)),
    "logprobs": ("BYTES", (-1,)),
    "prompt_logprobs": ("BYTES", (1,)),
    "num_input_tokens": ("UINT32", (1,)),
    "num_output_tokens": ("UINT32", (-1,)),
    "num_cached_tokens": ("UINT32", (1,)),
    "index": ("INT32", (-1,)),
}

FLAGGED_OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "return_finish_reason": ("finish_reason",),
    "return_cumulative_logprob": ("cumulative_logprob",),
    "return_logprobs": ("logprobs",),
    "return_num_input_tokens": ("num_input_tokens",),
    "return_num_output_tokens": ("num_output_tokens",),
    "return_num_cached_tokens": ("num_cached_tokens",),
    "return_token_ids": (OUTPUT_IDS, "sequence_length"),
}
"""Outputs that an input of type BOOL adds to a response, where the request does not name its outputs."""

EMBEDDING_INPUTS: Final[Tensors] = {
    TEXT_INPUT: ("BYTES", (1,)),
    INPUT_IDS: ("INT32", (-1,)),
    "embedding_request": ("BYTES", (1,)),
    "return_num_input_tokens": ("BOOL", (1,)),
    "return_num_output_tokens": ("BOOL", (1,)),
}
EMBEDDING_OUTPUTS: Final[Tensors] = {
    "embedding": ("FP32", (-1,)),
    TEXT_OUTPUT: ("BYTES", (-1,)),
    "num_input_tokens": ("UINT32", (1,)),
    "num_output_tokens": ("UINT32", (1,)),
}
"""Outputs of a pooling model. `text_output` is the embedding as a JSON list, for an `embedding_request`."""


def completed(
    config: ModelConfig, *, inputs: Tensors = INPUTS, plain: Tensors | None = None, outputs: Tensors = OUTPUTS
) -> ModelConfig:
    """Return a copy of `config` with the missing ones of these tensors. It is decoupled unless it says otherwise.

    `plain` are added to the inputs.
    """
    result = ModelConfig()
    result.CopyFrom(config)
    names = {tensor.name for tensor in result.input}
    for name, (datatype, dims) in {**inputs, **(plain or {})}.items():
        if name not in names:
            result.input.add(name=name, data_type=config_type(datatype), dims=dims, optional=True)
    names = {tensor.name for tensor in result.output}
    for name, (datatype, dims) in outputs.items():
        if name not in names:
            result.output.add(name=name, data_type=config_type(datatype), dims=dims)
    if not result.HasField("model_transaction_policy"):
        result.model_transaction_policy.decoupled = True
    return result


def is_language_model(config: ModelConfig) -> bool:
    """Return whether a model follows the contract, so that a front end may serve it as a chat model."""
    inputs = {tensor.name for tensor in config.input}
    return {TEXT_INPUT, MESSAGES} <= inputs and any(tensor.name == TEXT_OUTPUT for tensor in config.output)


def is_embedding_model(config: ModelConfig) -> bool:
    """Return whether a model makes an embedding of a text."""
    takes_text = any(tensor.name == TEXT_INPUT for tensor in config.input)
    floats = config_type("FP32")
    return takes_text and any(tensor.name == "embedding" and tensor.data_type == floats for tensor in config.output)
