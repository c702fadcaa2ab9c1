"""Reading back the engine's own `config.json`: a difference from the request fails the build."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.tensorrt_llm.settings import DTYPES, Settings

from .steps import SWITCHES, TOGGLES

CONFIG = "config.json"
_DISABLED = (None, "disable", False)
_BUILD = (
    "max_batch_size",
    "max_input_len",
    "max_num_tokens",
    "opt_num_tokens",
    "max_beam_width",
    "max_prompt_embedding_table_size",
    "max_draft_len",
    "kv_cache_type",
    "profiling_verbosity",
    "gather_context_logits",
    "weight_sparsity",
    "weight_streaming",
    "monitor_memory",
)
"""Options that stand in `build_config` under their own names."""
_MODES = {"draft_tokens_external": 2, "lookahead_decoding": 8}
"""TensorRT-LLM writes how it guesses ahead as a bit."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected value at `path` in `config.json`; `names` is the field that requested it."""

    path: str
    value: Any
    names: str


def check_engine(settings: Settings, folder: Path) -> None:
    """Raise BuildError, ENGINE_DIFFERS, with every difference: the requested value, and the engine's."""
    config = _config(folder)
    differences = [
        f"{expected.names}: requested {_shown(expected.value)}, and the engine has {_shown(actual)} ({expected.path})"
        for expected in expectations(settings)
        if not _same(expected, actual := _at(config, expected.path), config, settings)
    ]
    differences += _files(folder, settings.ranks)
    if differences:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS,
            f"the engine is not what was requested: {'; '.join(differences)}; leave out what this model or release "
            "does not do, or request what it does",
        )


def expectations(settings: Settings) -> Iterator[Expected]:
    """Yield what must stand in the engine's `config.json`."""
    options = settings.options
    if settings.dtype != "auto":
        yield Expected("pretrained_config.dtype", settings.dtype, "spec.engine.precision")
    if settings.qformat:
        yield Expected("pretrained_config.quantization.quant_algo", settings.algorithm, "spec.engine.precision")
    if settings.kv_cache_dtype:
        cache = settings.kv_cache_dtype.upper()
        yield Expected("pretrained_config.quantization.kv_cache_quant_algo", cache, _option("kv_cache_dtype"))
    if settings.block:
        yield Expected("pretrained_config.quantization.group_size", settings.block, _option("awq_block_size"))
    yield Expected("pretrained_config.mapping.tp_size", settings.tensor, "spec.parallelism.tensor")
    yield Expected("pretrained_config.mapping.pp_size", settings.pipeline, "spec.parallelism.pipeline")
    for name in ("moe_tp_size", "moe_ep_size"):
        if name in options:
            yield Expected(f"pretrained_config.mapping.{name}", options[name], _option(name))
    yield from _of_the_build(settings)


def _of_the_build(settings: Settings) -> Iterator[Expected]:
    options = dict(settings.options)
    if settings.max_batch_size:
        options["max_batch_size"] = settings.max_batch_size
    if "max_seq_len" in options:
        longest = int(options["max_seq_len"]) + int(options.get("max_draft_len", 0))
        yield Expected("build_config.max_seq_len", longest, _option("max_seq_len"))
        options["max_input_len"] = settings.longest_prompt
    for name in _BUILD:
        if name in options:
            yield Expected(f"build_config.{name}", options[name], _option(name))
    if "speculative_decoding_mode" in options:
        mode = _MODES[str(options["speculative_decoding_mode"])]
        yield Expected("build_config.speculative_decoding_mode", mode, _option("speculative_decoding_mode"))
    if "max_lora_rank" in options:
        yield Expected("build_config.lora_config.max_lora_rank", options["max_lora_rank"], _option("max_lora_rank"))
    plugins = [name for name in options if name.endswith("_plugin") or name in TOGGLES or name == "tokens_per_block"]
    for name in plugins:
        yield Expected(f"build_config.plugin_config.{name}", options[name], _option(name))


def _same(expected: Expected, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether the engine has the requested value, or what TensorRT-LLM makes of it where that is equivalent."""
    name = expected.path.rpartition(".")[2]
    if name in _MEANS_THE_SAME:
        return _MEANS_THE_SAME[name](expected.value, actual, config, settings)
    if name.endswith("_plugin"):
        return _plugin(expected.value, actual, config)
    if name in SWITCHES:
        return bool(expected.value) == bool(actual)
    return bool(expected.value == actual)


def _tokens(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether the engine has what TensorRT-LLM makes of the requested `max_num_tokens`.

    It cuts it to what a batch can hold, raises it to a block of the cache (without fused attention to a whole prompt),
    and then, where tokens are guessed ahead, to those of one step of a full batch.
    """
    build = config.get("build_config", {})
    plugins, batch = build.get("plugin_config", {}), int(build.get("max_batch_size") or 0)
    guessed = int(build.get("max_draft_len") or 0) if _guesses(build) else 0
    # `max_seq_len` has grown by the guessed tokens after `max_num_tokens` was cut to it
    longest = int(build.get("max_seq_len") or 0) - guessed
    tokens = min(int(expected), longest * batch) if longest > 0 and batch else int(expected)
    fused = plugins.get("context_fmha") is not False
    tokens = max(tokens, int((plugins.get("tokens_per_block") if fused else build.get("max_input_len")) or 0))
    if guessed:
        tokens = max(tokens, batch * (guessed + 1))
    return bool(actual == tokens)


def _optimum(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether they are the same: an engine is not tuned for more tokens than a step can have."""
    most = int(config.get("build_config", {}).get("max_num_tokens") or expected)
    return bool(actual == min(int(expected), most))


def _guesses(build: Mapping[str, Any]) -> bool:
    return build.get("speculative_decoding_mode") not in (None, 0, 1)


def _cache_kind(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether they are the same: releases write it in capitals, or not."""
    return str(expected).lower() == str(actual).rpartition(".")[2].lower()


def _nccl(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether they are the same: a single GPU needs no communication."""
    return settings.ranks == 1 or _plugin(expected, actual, config)


def _gemm(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether they are the same: nvfp4 has products of its own."""
    return (settings.algorithm == "NVFP4" and actual == "nvfp4") or _plugin(expected, actual, config)


def _state(expected: Any, actual: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether they are the same: a transformer has no state that could be paged."""
    return actual is False or bool(expected) == bool(actual)


_MEANS_THE_SAME = {
    "max_num_tokens": _tokens,
    "opt_num_tokens": _optimum,
    "kv_cache_type": _cache_kind,
    "nccl_plugin": _nccl,
    "gemm_plugin": _gemm,
    "paged_state": _state,
}
"""Silent adjustments of TensorRT-LLM that change nothing of what was meant."""


def _plugin(expected: Any, actual: Any, config: Mapping[str, Any]) -> bool:
    if expected in _DISABLED or actual in _DISABLED:
        return expected in _DISABLED and actual in _DISABLED
    if expected == "auto":  # kept as it is, or resolved
        return actual in ("auto", True) or actual in DTYPES.values()
    return bool(actual == expected)


def _files(folder: Path, ranks: int) -> list[str]:
    """Return the errors of the engine's files: one a rank, none empty."""
    sizes = {path.name: path.stat().st_size for path in folder.glob("rank*.engine")}
    missing = [name for name in (f"rank{rank}.engine" for rank in range(ranks)) if not sizes.get(name)]
    more = len(sizes) - ranks
    errors = [f"{name} is missing or empty" for name in missing]
    return errors + ([f"there are {len(sizes)} ranks, and {ranks} were requested"] if more > 0 else [])


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS, f"the engine's config.json cannot be read: {error}; build it again"
        ) from error
    if not isinstance(config, dict):
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "the engine's config.json is no JSON object; build it again")
    return config


def _at(config: Mapping[str, Any], path: str) -> Any:
    value: Any = config
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _option(name: str) -> str:
    return f"spec.engine.options.{name}"
