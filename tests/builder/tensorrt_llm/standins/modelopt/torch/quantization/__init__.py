"""modelopt's configurations by name, with the parts that others change.

Those of 0.37, where `quant_cfg` is a dict; with `STANDIN_MODELOPT=0.47` it is a list whose later entries count more.
"""

import os
from collections.abc import Callable
from typing import Any

from standin import called

LISTS = os.environ.get("STANDIN_MODELOPT") == "0.47"
WEIGHTS, CACHE = "*weight_quantizer", "*[kv]_bmm_quantizer"


def _config(quantizers: dict[str, Any], named: str = "") -> dict[str, Any]:
    """Return a configuration of these quantizers, all others off."""
    names = {"named": named} if named else {}
    if not LISTS:
        return {"quant_cfg": {**quantizers, "default": {"enable": False}}, "algorithm": "max", **names}
    off: dict[str, Any] = {"quantizer_name": "*", "enable": False}
    entries = [{"quantizer_name": name, "cfg": settings} for name, settings in quantizers.items()]
    return {"quant_cfg": [off, *entries], **({"algorithm": "max"} if named else {}), **names}


def _weights(named: str, block: int = 0, *more: dict[str, Any]) -> dict[str, Any]:
    weights: dict[str, Any] = {"num_bits": 4 if block else (4, 3)}
    if not LISTS:
        weights["enable"] = True
    if block:
        weights["block_sizes"] = {-1: block, "type": "static"}
    return _config({WEIGHTS: [weights, *more] if more else weights}, named)


FP8_DEFAULT_CFG = _weights("FP8")
FP8_PER_CHANNEL_PER_TOKEN_CFG = _weights("FP8_PER_CHANNEL_PER_TOKEN")
INT4_AWQ_CFG = _weights("W4A16_AWQ", 128)
W4A8_AWQ_BETA_CFG = _weights("W4A8_AWQ", 128, {"num_bits": (4, 3)})
NVFP4_DEFAULT_CFG = _weights("NVFP4")
FP8_KV_CFG = _config({CACHE: {"num_bits": (4, 3)}})
NVFP4_KV_CFG = _config({CACHE: {"num_bits": (2, 1)}})


def effective(config: dict[str, Any], name: str) -> Any:
    """Return the settings of a quantizer that count, or nothing where it is off."""
    quantizers = config["quant_cfg"]
    assert isinstance(quantizers, list) is LISTS, "the configuration has the form of another release"
    if not LISTS:
        return quantizers.get(name)
    settings = None
    for entry in quantizers:
        assert {"quantizer_name"} < entry.keys() <= {"quantizer_name", "cfg", "enable"}
        if entry["quantizer_name"] in (name, "*"):
            settings = entry.get("cfg") if entry.get("enable", True) else None
    return settings


def quantize(model: Any, config: dict[str, Any], forward_loop: Callable[[Any], None] | None = None) -> Any:
    assert forward_loop is not None
    batches = []
    handle = model.register_forward_pre_hook(
        lambda _, __, kwargs: batches.append(list(kwargs["input_ids"].shape)), with_kwargs=True
    )
    forward_loop(model)
    handle.remove()
    weights = effective(config, WEIGHTS)
    assert weights, "nothing quantizes the weights"
    weights = weights[0] if isinstance(weights, list) else weights
    cache = (effective(config, CACHE) or {}).get("num_bits")
    called("mtq.quantize", named=config["named"], blocks=weights.get("block_sizes", {}).get(-1), batches=batches)
    model.quantized = {
        "quant_algo": config["named"],
        "kv_cache_quant_algo": {(4, 3): "FP8", (2, 1): "NVFP4"}.get(cache),
        "group_size": weights.get("block_sizes", {}).get(-1),
        "exclude_modules": ["lm_head"],
    }
    return model
