"""modelopt 0.37.0: its configurations by name, with the parts that others change."""

from collections.abc import Callable
from typing import Any

from standin import called


def _weights(block: int = 0) -> dict[str, Any]:
    weights: dict[str, Any] = {"num_bits": 4 if block else (4, 3), "enable": True}
    if block:
        weights["block_sizes"] = {-1: block, "type": "static"}
    return {"quant_cfg": {"*weight_quantizer": weights, "default": {"enable": False}}, "algorithm": "max"}


FP8_DEFAULT_CFG = _weights() | {"named": "FP8"}
FP8_PER_CHANNEL_PER_TOKEN_CFG = _weights() | {"named": "FP8_PER_CHANNEL_PER_TOKEN"}
INT4_AWQ_CFG = _weights(128) | {"named": "W4A16_AWQ"}
W4A8_AWQ_BETA_CFG = _weights(128) | {"named": "W4A8_AWQ"}
W4A8_AWQ_BETA_CFG["quant_cfg"]["*weight_quantizer"] = [
    W4A8_AWQ_BETA_CFG["quant_cfg"]["*weight_quantizer"],
    {"num_bits": (4, 3), "enable": True},
]
NVFP4_DEFAULT_CFG = _weights() | {"named": "NVFP4"}
FP8_KV_CFG = {
    "quant_cfg": {"*[kv]_bmm_quantizer": {"num_bits": (4, 3), "enable": True}, "default": {"enable": False}},
    "algorithm": "max",
}
NVFP4_KV_CFG = {"quant_cfg": {"*[kv]_bmm_quantizer": {"num_bits": (2, 1), "enable": True}}, "algorithm": "max"}


def quantize(model: Any, config: dict[str, Any], forward_loop: Callable[[Any], None] | None = None) -> Any:
    assert forward_loop is not None
    batches = []
    handle = model.register_forward_pre_hook(
        lambda _, __, kwargs: batches.append(list(kwargs["input_ids"].shape)), with_kwargs=True
    )
    forward_loop(model)
    handle.remove()
    weights = config["quant_cfg"]["*weight_quantizer"]
    weights = weights[0] if isinstance(weights, list) else weights
    cache = config["quant_cfg"].get("*[kv]_bmm_quantizer", {}).get("num_bits")
    called("mtq.quantize", named=config["named"], blocks=weights.get("block_sizes", {}).get(-1), batches=batches)
    model.quantized = {
        "quant_algo": config["named"],
        "kv_cache_quant_algo": {(4, 3): "FP8", (2, 1): "NVFP4"}.get(cache),
        "group_size": weights.get("block_sizes", {}).get(-1),
        "exclude_modules": ["lm_head"],
    }
    return model
