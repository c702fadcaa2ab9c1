"""A model on its devices with its cache reserved, ready to generate: alone, or as one rank of several."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.devices.gpus import gpus_of_model
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import internal, invalid, unavailable

from . import sizing
from .sampling.sampler import Sampler, install
from .sizing import CacheSize

_ABSENT = 0.5  # a value that makes the library keep its per-request warpers; every request says its own
CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Opened:
    """A model on its devices. `manager` is the library's, warmed up and not started. `ends`: the model's end tokens."""

    model: Any
    size: CacheSize
    manager: Any
    sampler: Sampler
    ends: frozenset[int]
    bytes_per_token: int


def devices_of(spec: InstanceSpec, visible_gpus: int) -> tuple[str, ...]:
    """Return the devices as PyTorch names them; of several each takes its share of every layer. Raises ServingError."""
    if spec.kind == "KIND_CPU":
        return (CPU,)
    if spec.kind == "KIND_MODEL":
        return tuple(f"cuda:{gpu}" for gpu in gpus_of_model(spec.config, visible_gpus)) or (CPU,)
    if not visible_gpus:
        raise unavailable(
            f"model instance '{spec.name}' (KIND_GPU) needs CUDA, which this PyTorch ({torch.__version__}) cannot use "
            "here; give the model an instance group of KIND_CPU"
        )
    return (f"cuda:{spec.device_id}",)


def check_split(model: str, text: Any, parts: int) -> None:
    """Raise ServingError if a model cannot be split over this number of GPUs. `text` is its configuration."""
    if not getattr(text, "base_model_tp_plan", None):
        raise invalid(
            f"model '{model}': the library has no plan to split a {text.model_type} over {parts} GPUs; give it one"
        )
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    if heads % parts or text.num_attention_heads % parts:
        fitting = [count for count in range(1, heads + 1) if not (heads % count or text.num_attention_heads % count)]
        raise invalid(
            f"model '{model}': {text.num_attention_heads} attention heads with {heads} key-value heads cannot be split "
            f"over {parts} GPUs; give it one of {', '.join(map(str, fitting))}"
        )


def open_model(spec: InstanceSpec, devices: tuple[str, ...]) -> Opened:
    """Load the weights and reserve the cache. Of several devices the process group says which is this one's.

    Raises ServingError.
    """
    parameters = Parameters(spec.config)
    try:
        model = _model(spec.version_dir, parameters, devices)
    except Exception as error:
        raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
    text = model.config.get_text_config()
    defaults = sizing.ON_CPU if devices[0] == CPU else sizing.ON_GPU
    per_token = bytes_per_token(text, model.dtype.itemsize)
    size = sizing.cache_size(spec.config.name, parameters, per_token, max_positions(text), defaults)
    try:
        ends = _end_ids(model.generation_config)
        manager, sampler = _manager(spec, model, parameters, size, ends)
    except Exception as error:
        raise internal(f"model instance '{spec.name}' cannot start generating: {error}") from error
    return Opened(model, size, manager, sampler, frozenset(ends), per_token)


def bytes_per_token(text: Any, element_bytes: int) -> int:
    """Return what one token takes in the cache, on all devices: a key and a value of every head of every layer."""
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(2 * text.num_hidden_layers * heads * head_dim * element_bytes)


def max_positions(text: Any) -> int:
    """Return the longest sequence the model knows, in tokens."""
    return int(getattr(text, "max_position_embeddings", None) or 2**31 - 1)


def is_greedy_only(model: str, parameters: Parameters) -> bool:
    """Return whether the configuration rules sampling out."""
    decoding = parameters.text("decoding", "sampling")
    if decoding not in ("sampling", "greedy"):
        raise invalid(f"model '{model}': parameter 'decoding' is '{decoding}', expected sampling or greedy")
    return decoding == "greedy"


def _model(version_dir: Path, parameters: Parameters, devices: tuple[str, ...]) -> Any:
    split = {"distributed_config": DistributedConfig(tp_size=len(devices))} if len(devices) > 1 else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(version_dir),
        dtype=parameters.text("dtype", "auto"),
        attn_implementation=parameters.text("attn_implementation") or None,
        local_files_only=True,
        **split,
    )
    return (model if split else model.to(torch.device(devices[0]))).eval()


def _manager(
    spec: InstanceSpec, model: Any, parameters: Parameters, size: CacheSize, ends: list[int]
) -> tuple[Any, Sampler]:
    greedy = is_greedy_only(spec.config.name, parameters)
    own = model.generation_config
    vocabulary = int(model.config.get_text_config().vocab_size)
    settings = transformers.GenerationConfig(
        do_sample=not greedy,
        eos_token_id=[*ends, vocabulary],
        pad_token_id=own.pad_token_id,
        **({} if greedy else {"temperature": _ABSENT, "top_k": 1, "top_p": _ABSENT}),
    )
    batching = ContinuousBatchingConfig(
        page_size=size.page_size,
        num_blocks=size.num_blocks,
        max_batch_tokens=size.max_batch_tokens,
        max_requests_per_batch=parameters.integer("max_requests_per_batch", 256, minimum=1),
        per_request_processors=not greedy,
        auto_switch_to_flash=False,
        use_cuda_graph=parameters.flag("use_cuda_graph", False) if "use_cuda_graph" in parameters else None,
        use_async_batching=(
            parameters.flag("use_async_batching", False) if "use_async_batching" in parameters else None
        ),
    )
    manager = model.init_continuous_batching(settings, batching)
    sampler = install(manager, vocabulary, ends, greedy=greedy)
    manager.warmup()  # reserves the cache now, so that what does not fit is said while loading
    return manager, sampler


def _end_ids(own: Any) -> list[int]:
    """Return the token ids at which the model's own generation configuration ends an answer."""
    ids = own.eos_token_id
    if ids is None:
        return []
    return list(ids) if isinstance(ids, (list, tuple)) else [ids]
