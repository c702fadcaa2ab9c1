"""Opening a model by TensorRT-LLM: the right class for its folder, with TensorRT-LLM's own values as arguments."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.backends.devices.gpus import named_gpus
from argosy_runtime.backends.generation.defaults import model_defaults
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ErrorKind, ServingError, internal, invalid, unavailable

from .adapters import Adapters, takes_adapters
from .arguments import GUIDED, checkpoint_arguments, engine_arguments
from .folders import ModelFolder, folder_of
from .sampling import BIAS, FULL_SAMPLER, GUIDE, Abilities, lacking

LAST_WITH_ENGINES: Final = "1.2.1"
"""The last release that opens engines."""
DEFAULT_RANK: Final = 64
"""TensorRT-LLM's own largest rank."""
ADAPTERS_AT_ONCE: Final = 4
"""Adapters that fit into a checkpoint's engine at least; further ones take turns."""
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Opened:
    """A loaded model. `parameters` makes a `SamplingParams`, `adapter` a `LoRARequest` of an adapter's name.

    `takes_adapters`: whether more of them may be added.
    """

    llm: Any
    tokenizer: Any
    abilities: Abilities
    parameters: Callable[[Mapping[str, Any]], Any]
    adapter: Callable[[str], Any]
    adapters: Adapters
    takes_adapters: bool
    request_error: type[Exception]


def opened(spec: InstanceSpec, host: Host) -> Opened:
    """Open the model of a version's folder. Raises ServingError."""
    name = spec.config.name
    folder = folder_of(name, spec.version_dir)
    adapters = Adapters.of(spec.config, folder)
    gpus = _use_gpus(spec, folder)
    if folder.engine:
        arguments = engine_arguments(spec.config, folder)
        llm_class = _engine_class(name, folder)
    else:
        arguments = checkpoint_arguments(spec.config, folder, _declared(name, folder), gpus)
        arguments |= _lora_arguments(spec, adapters, arguments)
        llm_class = _checkpoint_class()
    defaults = model_defaults(spec, _defaults_folders(folder), lacking(_has_full_sampler(folder, arguments)), host)
    tokenizer = _tokenizer(name, folder)
    llm = _constructed(name, folder, llm_class, arguments)
    from tensorrt_llm.llmapi import RequestError

    return Opened(
        llm=llm,
        tokenizer=tokenizer,
        abilities=_abilities(folder, arguments, tokenizer, defaults),
        parameters=lambda settings: _parameters(settings, folder.vocabulary),
        adapter=lambda adapter: _lora_request(adapters, adapter),
        adapters=adapters,
        takes_adapters=takes_adapters(folder) if folder.engine else bool(arguments.get("enable_lora")),
        request_error=RequestError,
    )


def _lora_arguments(spec: InstanceSpec, adapters: Adapters, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a checkpoint that takes adapters, of which none may be larger than they allow."""
    if not adapters and not arguments.get("enable_lora"):
        return {}
    rank = max(adapters.largest_rank, Parameters(spec.config).integer("max_lora_rank", 0)) or DEFAULT_RANK
    adapters.limit(rank)
    return {"enable_lora": True, "lora_config": _lora(adapters, rank)}


def _defaults_folders(folder: ModelFolder) -> list[Path]:
    """Return the folders whose files may have the defaults of requests."""
    return [folder.path] if folder.tokenizer is None else [folder.path, folder.tokenizer]


def _has_full_sampler(folder: ModelFolder, arguments: Mapping[str, Any]) -> bool:
    return folder.engine or arguments.get("sampler_type") == FULL_SAMPLER


def _abilities(
    folder: ModelFolder, arguments: Mapping[str, Any], tokenizer: Any, defaults: Mapping[str, Any]
) -> Abilities:
    return Abilities(
        vocabulary=folder.vocabulary,
        context=_context(folder, arguments),
        ends=_ends(folder, tokenizer),
        has_tokenizer=tokenizer is not None,
        guided=str(arguments.get(GUIDED, "")),
        engine=folder.engine,
        full_sampler=_has_full_sampler(folder, arguments),
        defaults=defaults,
    )


def _checkpoint_class() -> Any:
    from tensorrt_llm import LLM

    return LLM


def _engine_class(model: str, folder: ModelFolder) -> Any:
    """Return the class that opens engines. Raises ServingError where this release has none, or is another one."""
    import tensorrt_llm

    installed, built = str(tensorrt_llm.__version__), folder.release
    about = f"model '{model}': its engine was built by TensorRT-LLM {built or 'of an unknown release'}"
    try:
        from tensorrt_llm._tensorrt_engine import LLM
    except ImportError as error:
        raise unavailable(
            f"{about}, and the installed {installed} opens no engines any more: install {built or LAST_WITH_ENGINES} "
            "in this backend's environment, or serve the checkpoint (engine.options.backend: pytorch)"
        ) from error
    if built and built != installed:
        raise unavailable(
            f"{about}, and only that release opens it; this environment has {installed}: build it again with "
            f"{installed}, or install {built}"
        )
    return LLM


def _use_gpus(spec: InstanceSpec, folder: ModelFolder) -> int:
    """Let this process see the model's GPUs alone, and return their number; 0 where all are left to it.

    Raises ServingError.
    """
    named = named_gpus(spec.config)
    desired = named if spec.kind == "KIND_MODEL" else (spec.device_id,) if spec.kind == "KIND_GPU" else ()
    if not desired:
        return 0
    if len(desired) < folder.ranks:
        raise unavailable(
            f"model '{spec.config.name}': its engine has {folder.ranks} parts, one for each GPU, and the model has "
            f"{len(desired)}: {', '.join(map(str, desired))}"
        )
    seen = [device for device in os.environ.get(VISIBLE, "").split(",") if device]
    if seen and max(desired) >= len(seen):
        raise unavailable(f"model '{spec.config.name}': there is no GPU {max(desired)}, only {len(seen)}, from 0")
    os.environ[VISIBLE] = ",".join(seen[gpu] if seen else str(gpu) for gpu in desired)
    return len(desired)


def _declared(model: str, folder: ModelFolder) -> dict[str, Any]:
    """Return the arguments that came with a checkpoint."""
    if not folder.arguments.is_file():
        return {}
    try:
        values = yaml.safe_load(folder.arguments.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise invalid(f"model '{model}': '{folder.arguments}' cannot be read: {error}") from error
    if values is not None and not isinstance(values, dict):
        raise invalid(f"model '{model}': '{folder.arguments}' is no mapping of arguments")
    return values or {}


def _constructed(model: str, folder: ModelFolder, llm_class: Any, arguments: Mapping[str, Any]) -> Any:
    tokenizer: dict[str, Any] = (
        {"skip_tokenizer_init": True} if folder.tokenizer is None else {"tokenizer": str(folder.tokenizer)}
    )
    try:
        return llm_class(model=str(folder.path), **tokenizer, **_own_values(arguments))
    except ValueError as error:
        raise invalid(f"model '{model}': TensorRT-LLM refuses its arguments: {error}") from error
    except ServingError:
        raise
    except Exception as error:
        raise ServingError(
            ErrorKind.INTERNAL, f"model '{model}': TensorRT-LLM cannot open '{folder.path}': {error}"
        ) from error


def _own_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with TensorRT-LLM's classes in place of mappings."""
    from tensorrt_llm import llmapi

    classes = {
        "kv_cache_config": llmapi.KvCacheConfig,
        "extended_runtime_perf_knob_config": llmapi.ExtendedRuntimePerfKnobConfig,
        "scheduler_config": _scheduler,
    }
    result = {
        name: classes[name](**value) if name in classes and isinstance(value, Mapping) else value
        for name, value in arguments.items()
    }
    sizes = arguments.get("speculative_config")
    if isinstance(sizes, Mapping) and "max_window_size" in sizes:
        result["speculative_config"] = llmapi.LookaheadDecodingConfig(**sizes)
    return result


def _scheduler(capacity_scheduler_policy: Any, **more: Any) -> Any:
    from tensorrt_llm.llmapi import CapacitySchedulerPolicy, SchedulerConfig

    policy = CapacitySchedulerPolicy[str(capacity_scheduler_policy)]
    return SchedulerConfig(capacity_scheduler_policy=policy, **more)


def _lora(adapters: Adapters, rank: int) -> Any:
    from tensorrt_llm.lora_helper import LoraConfig

    count = max(len(adapters.paths), ADAPTERS_AT_ONCE)
    return LoraConfig(lora_dir=adapters.paths[:1], max_lora_rank=rank, max_loras=count, max_cpu_loras=count)


def _lora_request(adapters: Adapters, name: str) -> Any:
    from tensorrt_llm.executor.request import LoRARequest

    adapter = adapters.named(name)
    return LoRARequest(lora_name=adapter.name, lora_int_id=adapter.number, lora_path=str(adapter.path))


def _parameters(settings: Mapping[str, Any], vocabulary: int) -> Any:
    from tensorrt_llm import SamplingParams
    from tensorrt_llm.llmapi import GuidedDecodingParams

    values = dict(settings)
    if GUIDE in values:
        values[GUIDE] = GuidedDecodingParams(**values[GUIDE])
    if BIAS in values:
        values[BIAS] = _bias(values[BIAS], vocabulary)
    return SamplingParams(**values)


def _bias(biases: Mapping[int, float], vocabulary: int) -> Any:
    import torch

    bias = torch.zeros(vocabulary, dtype=torch.float32)
    for token, value in biases.items():
        bias[token] = value
    return bias


def _tokenizer(model: str, folder: ModelFolder) -> Any:
    if folder.tokenizer is None:
        return None
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(folder.tokenizer), local_files_only=True)
    except Exception as error:
        raise internal(f"failed to load '{folder.tokenizer}' for model '{model}': {error}") from error


def _ends(folder: ModelFolder, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer: the model's, and the tokenizer's, at which the engine itself stops."""
    own = getattr(tokenizer, "eos_token_id", None)
    return frozenset([*folder.ends, *([own] if isinstance(own, int) else [])])


def _context(folder: ModelFolder, arguments: Mapping[str, Any]) -> int:
    """Return the most tokens of a prompt and its answer; 0 where that is not known."""
    declared = arguments.get("max_seq_len")
    if folder.engine or not isinstance(declared, int):
        return folder.context
    return min(declared, folder.context) if folder.context else declared
