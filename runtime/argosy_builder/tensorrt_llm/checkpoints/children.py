"""Functions of child processes: TensorRT-LLM's own conversion and quantization, and modelopt's. Arguments are JSON.

modelopt changes its own tables while it works, so no process quantizes twice.
"""

import copy
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError, Progress

CONFIGURATIONS = {
    "fp8": "FP8_DEFAULT_CFG",
    "fp8_pc_pt": "FP8_PER_CHANNEL_PER_TOKEN_CFG",
    "int4_awq": "INT4_AWQ_CFG",
    "w4a8_awq": "W4A8_AWQ_BETA_CFG",
    "nvfp4": "NVFP4_DEFAULT_CFG",
}
"""modelopt's configuration for each format of the engine-less path."""
CACHES = {"fp8": "FP8_KV_CFG", "nvfp4": "NVFP4_KV_CFG"}


def convert(
    model: str,
    output: str,
    dtype: str,
    algorithm: str | None,
    mapping: dict[str, int],
    arguments: dict[str, Any],
    progress: Progress,
) -> None:
    """Split a checkpoint into ranks, with weights rounded where `algorithm` says so (W8A16, W4A16).

    `mapping` are the arguments of `Mapping` but the rank's; `arguments` the further ones of `from_hugging_face`.
    """
    from tensorrt_llm import AutoModelForCausalLM, Mapping
    from tensorrt_llm.models.modeling_utils import QuantConfig

    if algorithm is not None:
        from tensorrt_llm.quantization import QuantAlgo

        arguments = {**arguments, "quant_config": QuantConfig(quant_algo=QuantAlgo(algorithm))}
    ranks = mapping["world_size"]
    for rank in range(ranks):
        progress(100 * rank // ranks, f"rank {rank + 1} of {ranks}")
        part = AutoModelForCausalLM.from_hugging_face(model, dtype, mapping=Mapping(rank=rank, **mapping), **arguments)
        part.save_checkpoint(output, save_config=rank == 0)
        del part
        gc.collect()


def quantize(arguments: dict[str, Any]) -> None:
    """Quantize with calibration, and split into ranks: `quantize_and_export` with these arguments."""
    from tensorrt_llm.logger import logger
    from tensorrt_llm.quantization import quantize_and_export

    logger.set_level("verbose")
    quantize_and_export(**arguments)


def quantize_checkpoint(
    model: str,
    output: str,
    qformat: str,
    cache: str | None,
    dtype: str,
    dataset: str,
    calibration: dict[str, Any],
    progress: Progress,
) -> None:
    """Quantize with calibration, and write a checkpoint of Hugging Face's form.

    `calibration`: batch_size, max_length (tokens of a text), seed, device_map, block_size.
    """
    import modelopt.torch.quantization as mtq
    import torch
    from modelopt.torch.export import export_hf_checkpoint
    from transformers import AutoModelForCausalLM

    torch.manual_seed(calibration["seed"])
    tokenizer = _tokenizer(model)
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=dtype, device_map=calibration["device_map"])
    configuration = configuration_of(mtq, qformat, cache, calibration["block_size"])
    batches = list(_batches(tokenizer, dataset, calibration["batch_size"], calibration["max_length"]))

    def calibrate(quantized: Any) -> None:
        with torch.inference_mode():
            for at, batch in enumerate(batches):
                progress(90 * at // len(batches), f"calibrating batch {at + 1} of {len(batches)}")
                quantized(**batch.to(quantized.device))

    quantized = mtq.quantize(loaded, configuration, calibrate)
    progress(90, "writing the checkpoint")
    export_hf_checkpoint(quantized, export_dir=output)
    tokenizer.save_pretrained(output)


def _tokenizer(model: str) -> Any:
    """Return a model's tokenizer, which can pad the texts of a batch."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def configuration_of(mtq: Any, qformat: str, cache: str | None, block: int) -> dict[str, Any]:
    """Return a copy of modelopt's configuration, with the cache's and AWQ's block size laid over it.

    `quant_cfg` is a dict of patterns up to 0.43, and a list of entries of which a later one counts more since 0.44.
    """
    configuration: dict[str, Any] = copy.deepcopy(getattr(mtq, CONFIGURATIONS[qformat]))
    quantizers = configuration["quant_cfg"]
    if block:
        for settings in _settings_of(quantizers, _WEIGHTS)[:1]:
            settings["block_sizes"][-1] = block
    if cache is not None:
        more = copy.deepcopy(getattr(mtq, CACHES[cache])["quant_cfg"])
        if isinstance(quantizers, list):
            quantizers.extend(entry for entry in more if entry.get("quantizer_name") not in _DEFAULTS)
        else:
            quantizers.update({name: settings for name, settings in more.items() if name not in _DEFAULTS})
    return configuration


_WEIGHTS = "*weight_quantizer"
_DEFAULTS = ("default", "*")
"""The entries that turn off every quantizer which no other entry names."""


def _settings_of(quantizers: Any, name: str) -> list[dict[str, Any]]:
    """Return the settings of a quantizer in either form, several where it quantizes in steps.

    Raises BuildError, BUILDER_MISSING, where this release of modelopt has none of that name.
    """
    if isinstance(quantizers, list):
        settings = next((entry.get("cfg") for entry in quantizers if entry.get("quantizer_name") == name), None)
    else:
        settings = quantizers.get(name)
    if not settings:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"spec.engine.options.awq_block_size: this release of modelopt has no {name} in its configuration; leave "
            "the option out, or set engine.image to TensorRT-LLM 1.2",
        )
    return settings if isinstance(settings, list) else [settings]


def _batches(tokenizer: Any, dataset: str, size: int, length: int) -> Iterator[Any]:
    """Yield the dataset's texts as tokens."""
    import json

    lines = Path(dataset, "train.jsonl").read_text(encoding="utf-8").split("\n")
    texts = [json.loads(line)["text"] for line in lines if line]
    for at in range(0, len(texts), size):
        yield tokenizer(texts[at : at + size], return_tensors="pt", padding=True, truncation=True, max_length=length)
