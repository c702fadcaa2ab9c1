"""The tensors of a text generation model."""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import config_type

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")

_IDS = {"input_ids": ("INT32", [-1]), "request_output_len": ("INT32", [1])}
_IDS_OPTIONAL = {
    "end_id": ("INT32", [1]),
    "temperature": ("FP32", [1]),
    "top_k": ("INT32", [1]),
    "top_p": ("FP32", [1]),
    "random_seed": ("UINT64", [1]),
    "streaming": ("BOOL", [1]),
}
_TEXT = {"text_input": ("BYTES", [1])}
_TEXT_OPTIONAL = {
    "stream": ("BOOL", [1]),
    "sampling_parameters": ("BYTES", [1]),
    "exclude_input_in_output": ("BOOL", [1]),
}
_IDS_OUTPUTS = {"output_ids": ("INT32", [-1]), "sequence_length": ("INT32", [1])}
_TEXT_OUTPUTS = {"text_output": ("BYTES", [1])}

Tensors = dict[str, tuple[str, list[int]]]


def has_tokenizer(version_dir: Path) -> bool:
    """Return whether the folder has a tokenizer next to the model."""
    return any((version_dir / name).is_file() for name in TOKENIZER_FILES)


def completed(config: ModelConfig, *, has_tokenizer: bool) -> ModelConfig:
    """Return a copy of `config` with what is missing. With a tokenizer, requests may come either way, so all is
    optional.
    """
    result = ModelConfig()
    result.CopyFrom(config)
    if not result.input:
        required = {} if has_tokenizer else _IDS
        optional = {**_IDS, **_IDS_OPTIONAL, **_TEXT, **_TEXT_OPTIONAL} if has_tokenizer else _IDS_OPTIONAL
        _add(result, "input", required)
        _add(result, "input", optional, optional=True)
    if not result.output:
        _add(result, "output", {**_IDS_OUTPUTS, **(_TEXT_OUTPUTS if has_tokenizer else {})})
    if not result.HasField("model_transaction_policy"):
        result.model_transaction_policy.decoupled = True
    return result


def _add(config: ModelConfig, side: str, tensors: Tensors, **fields: bool) -> None:
    for name, (datatype, dims) in tensors.items():
        getattr(config, side).add(name=name, data_type=config_type(datatype), dims=dims, **fields)
