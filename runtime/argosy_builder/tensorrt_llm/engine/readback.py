"""What was asked, read back from the engine's own `config.json`: a difference fails the build."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_builder.tensorrt_llm.settings import DTYPES, Settings

from .commands import SWITCHES, TOGGLES

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
    """`path` is where it stands in `config.json`; `names` the field that asked for it."""

    path: str
    value: Any
    names: str


def check_engine(settings: Settings, folder: Path) -> None:
    """Raises BuildError: ENGINE_DIFFERS, with every difference: what was asked, and what the engine has."""
    config = _config(folder)
    differences = [
        f"{each.names}: asked {_shown(each.value)}, and the engine has {_shown(_at(config, each.path))} ({each.path})"
        for each in expectations(settings)
        if not _same(each, _at(config, each.path), config, settings)
    ]
    differences += _files(folder, settings.ranks)
    if differences:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS,
            f"the engine is not what was asked: {'; '.join(differences)}; leave out what this model or release "
            "does not do, or ask for what it does",
        )


def expectations(settings: Settings) -> Iterator[Expected]:
    """Yield what must stand in the engine's `config.json`."""
    options = settings.options
    if settings.dtype != "auto":
        yield Expected("pretrained_config.dtype", settings.dtype, "spec.engine.precision")
    if settings.qformat:
        yield Expected("pretrained_config.quantization.quant_algo", settings.algorithm, "spec.engine.precision")
    if settings.kv_cache_dtype:
        asked = settings.kv_cache_dtype.upper()
        yield Expected("pretrained_config.quantization.kv_cache_quant_algo", asked, _option("kv_cache_dtype"))
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


def _same(asked: Expected, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether the engine has what was asked, or what TensorRT-LLM makes of it where that comes to the same."""
    name = asked.path.rpartition(".")[2]
    if name in _MEANS_THE_SAME:
        return _MEANS_THE_SAME[name](asked.value, found, config, settings)
    if name.endswith("_plugin"):
        return _plugin(asked.value, found, config)
    if name in SWITCHES:
        return bool(asked.value) == bool(found)
    return bool(asked.value == found)


def _tokens(asked: Any, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """More tokens than a batch can hold are cut to that, and a block is the least."""
    build = config.get("build_config", {})
    most = int(build.get("max_seq_len") or 0) * int(build.get("max_batch_size") or 0)
    block = int(build.get("plugin_config", {}).get("tokens_per_block") or 0)
    return found in (asked, min(asked, most) if most else asked, max(asked, block))


def _cache_kind(asked: Any, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """Releases write it in capitals, or not."""
    return str(asked).lower() == str(found).rpartition(".")[2].lower()


def _nccl(asked: Any, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """One GPU tells nobody anything."""
    return settings.ranks == 1 or _plugin(asked, found, config)


def _gemm(asked: Any, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """nvfp4 has products of its own."""
    return (settings.algorithm == "NVFP4" and found == "nvfp4") or _plugin(asked, found, config)


def _state(asked: Any, found: Any, config: Mapping[str, Any], settings: Settings) -> bool:
    """A transformer has no state that could be paged."""
    return found is False or bool(asked) == bool(found)


_MEANS_THE_SAME = {
    "max_num_tokens": _tokens,
    "kv_cache_type": _cache_kind,
    "nccl_plugin": _nccl,
    "gemm_plugin": _gemm,
    "paged_state": _state,
}
"""Silent adjustments of TensorRT-LLM that change nothing of what was meant."""


def _plugin(asked: Any, found: Any, config: Mapping[str, Any]) -> bool:
    if asked in _DISABLED or found in _DISABLED:
        return asked in _DISABLED and found in _DISABLED
    if asked == "auto":  # kept as it is, or resolved
        return found in ("auto", True) or found in DTYPES.values()
    return bool(found == asked)


def _files(folder: Path, ranks: int) -> list[str]:
    """Return what is wrong with the engine's files: one a rank, none empty."""
    found = {path.name: path.stat().st_size for path in folder.glob("rank*.engine")}
    missing = [name for name in (f"rank{rank}.engine" for rank in range(ranks)) if not found.get(name)]
    more = len(found) - ranks
    said = [f"{name} is missing or empty" for name in missing]
    return said + ([f"there are {len(found)} ranks, and {ranks} were asked"] if more > 0 else [])


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS, f"the engine's config.json cannot be read: {error}; build it anew"
        ) from error
    if not isinstance(found, dict):
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "the engine's config.json is no JSON object; build it anew")
    return found


def _at(config: Mapping[str, Any], path: str) -> Any:
    found: Any = config
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _option(name: str) -> str:
    return f"spec.engine.options.{name}"
