"""Parameters of language models: what the backends `tensorrtllm` and `vllm` of each server read in `config.pbtxt`.

As NVIDIA's releases 26.04 to 26.07 have them. Never run on NVIDIA's server: the tests run stand-ins that read what its
backends read.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from argosy.api.engine.engine import Engine
from argosy.api.inferencemodel import InferenceModel, InferenceModelSpec
from argosy.api.model.adapters import DEFAULT_RANK, MOST_AT_ONCE
from argosy.api.model.footprint import Footprint
from argosy.api.servingpool import RuntimeName
from argosy.planning.variants import VariantModel
from argosy_agent.contract.engine_options.tensorrt_llm import SERVING, paged_attention
from argosy_runtime.modelconfig.parameters.adapters import reserved_rank

POD_REPOSITORY = "/models/repository"
"""Where a server's Pod has its repository."""
TENSORRT_LLM, VLLM = "tensorrtllm", "vllm"
BY_RUNTIME = frozenset({TENSORRT_LLM, VLLM})
"""The backends whose models are configured differently for our server and NVIDIA's."""
TOKENIZER = "tokenizer"
"""The folder of an engine's tokenizer, next to its files."""
REUSE = "enable_kv_cache_reuse"
_OFF = ""
"""NVIDIA's backend reads these without a default, and turns off what is empty; without them no model loads."""


GPU_MEMORY = "GPU_MEMORY"
"""The parameter by which the bundled server's engines keep to a footprint: bytes of each GPU, of one instance."""


def batches_rows(spec: InferenceModelSpec, runtime: RuntimeName) -> bool:
    """Return whether a model's largest batch is `max_batch_size`; engines that batch token by token have no rows."""
    return spec.backend != VLLM and (spec.backend != TENSORRT_LLM or runtime is RuntimeName.TRITON)


def language_parameters(
    model: InferenceModel, versions: Collection[int], gpus: Sequence[int], runtime: RuntimeName
) -> Mapping[str, str]:
    """Return the `parameters` of `config.pbtxt`, as texts; none of what other backends serve. What is a path names the
    newest version.
    """
    backend, engine = model.spec.backend, model.spec.engine
    if backend == VLLM:
        return {"REPORT_CUSTOM_METRICS": "true"} if runtime is RuntimeName.TRITON else _of_vllm(model, gpus)
    if backend != TENSORRT_LLM:
        return {}
    options = _serving_options(engine) if engine is not None else {}
    if runtime is RuntimeName.TRITON:
        return {**_of_nvidia(model, versions), **options}
    lora = {"enable_lora": _text(True)} if model.spec.adapters else {}
    return {**_memory(model.spec, gpus), **lora, **options}


def vllm_arguments(spec: InferenceModelSpec, gpus: int) -> dict[str, int]:
    """Return the arguments of vLLM's engine that follow from the spec, on so many GPUs. A model that names several and
    no parallelism shares each of its layers among them.
    """
    split = spec.parallelism
    tensor = gpus if gpus > 1 and split.gpus == 1 else split.tensor
    sizes = {"tensor_parallel_size": tensor, "pipeline_parallel_size": split.pipeline}
    arguments = {name: size for name, size in sizes.items() if size > 1}
    return {**arguments, **({"max_num_seqs": spec.max_batch_size} if spec.max_batch_size else {})}


def _of_vllm(model: InferenceModel, gpus: Sequence[int]) -> dict[str, str]:
    """Return what the bundled server's backend reads: the engine's arguments, and the memory that it may take."""
    spec = model.spec
    arguments = {name: _text(value) for name, value in vllm_arguments(spec, len(gpus)).items()}
    # An idle variant then sleeps in its process. On a CPU, vLLM does not start with it.
    sleeps = {"enable_sleep_mode": _text(True)} if gpus and isinstance(model, VariantModel) and model.sleeps else {}
    return {**arguments, **sleeps, **_memory(spec, gpus), **_lora_arguments(spec)}


def _memory(spec: InferenceModelSpec, gpus: Sequence[int]) -> dict[str, str]:
    """Return the memory that the bundled server's engine may take of each GPU, where a footprint declares it."""
    memory = (spec.footprint or Footprint()).gpu_memory
    return {GPU_MEMORY: _text(memory)} if gpus and memory is not None else {}


def _lora_arguments(spec: InferenceModelSpec) -> dict[str, str]:
    """Return the memory that an engine reserves for adapters: steps of ranks and of numbers, so that a further adapter
    seldom reloads the engine.
    """
    if not spec.adapters:
        return {}
    rank = max(adapter.rank or DEFAULT_RANK for adapter in spec.adapters)
    at_once = MOST_AT_ONCE if len(spec.adapters) > MOST_AT_ONCE // 2 else MOST_AT_ONCE // 2
    return {"enable_lora": _text(True), "max_lora_rank": _text(reserved_rank(rank)), "max_loras": _text(at_once)}


def _of_nvidia(model: InferenceModel, versions: Collection[int]) -> dict[str, str]:
    """Return what NVIDIA's backend must be told. Its paths are absolute, and one for all versions."""
    folder = f"{POD_REPOSITORY}/{model.served_name}/{max(versions)}" if versions else ""
    tokenizer = f"{folder}/{TOKENIZER}" if folder and model.spec.engine is not None else _OFF
    return {
        "gpt_model_type": "inflight_fused_batching",
        "tokenizer_dir": tokenizer,
        "xgrammar_tokenizer_info_path": _OFF,
        "guided_decoding_backend": _OFF,
        **({"gpt_model_path": folder} if folder else {}),
    }


def _serving_options(engine: Engine) -> dict[str, str]:
    """Return the options that a server reads of an engine, and no other. Reuse of the cache is the default of both
    servers; an engine that cannot do it must say so.
    """
    options = {option: _text(value) for option, value in sorted(engine.options.items()) if option in SERVING}
    if not paged_attention(engine.precision, engine.options):
        options.setdefault(REUSE, _text(False))
    width = engine.options.get("max_beam_width")
    return {**({} if width is None else {"max_beam_width": _text(width)}), **options}


def _text(value: Any) -> str:
    """Return a value as the backend reads it: flags in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
