"""Checks of a request against the model and the GPU, before any tool runs. Their errors have the numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest, ModelShape
from argosy_agent.contract.engine_options.precisions import Precision, unsupported_here
from argosy_builder.contract import BuildError
from argosy_builder.options import invalid

from .architectures import ENGINES
from .settings import Settings

_QUANTIZED = "quantization_config"


def check_gpu(request: BuildRequest) -> None:
    """Raise BuildError, INVALID_OPTIONS, where the requested GPU has not the requested precision."""
    precision = Precision(request.precision) if request.precision else None
    backend = str(request.options.get("backend", ""))
    if error := unsupported_here(request.builder, precision, request.architecture, backend):
        raise BuildError(BuildFailure.INVALID_OPTIONS, f"spec.engine.precision: {error}")


def check_fit(settings: Settings, config: Mapping[str, Any], shape: ModelShape | None) -> None:
    """Raise BuildError, INVALID_OPTIONS or UNSUPPORTED_MODEL, where the model of `config.json` does not fit."""
    _check_architecture(settings, config)
    _quantized_once(settings, config)
    if shape is None:
        return
    for error in (*_split(settings, shape), *_experts(settings, shape), *_lengths(settings, config, shape)):
        raise error
    if settings.block:
        for error in _blocks(settings, shape):
            raise error


def architecture_of(config: Mapping[str, Any]) -> str:
    """Return the first of `architectures`; empty where there is none."""
    named = config.get("architectures")
    return str(named[0]) if isinstance(named, list) and named else ""


def _check_architecture(settings: Settings, config: Mapping[str, Any]) -> None:
    name = architecture_of(config)
    if not name:
        raise BuildError(BuildFailure.MODEL_INVALID, "config.json: names no architectures; is it a language model?")
    if settings.is_engine and name not in ENGINES:
        raise BuildError(
            BuildFailure.UNSUPPORTED_MODEL,
            f"config.json: TensorRT-LLM makes no engine of {name}; set engine.options.backend: pytorch, whose path "
            "knows newer models",
        )


def _quantized_once(settings: Settings, config: Mapping[str, Any]) -> None:
    quantization = config.get(_QUANTIZED)
    if not isinstance(quantization, Mapping):
        return
    method = quantization.get("quant_method", "quantized")
    if settings.qformat and settings.qformat != "full_prec":
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"spec.engine.precision: the checkpoint is quantized already ({method}, config.json); leave precision "
            "out, or give the one that it was made from",
        )
    if method == "gptq" and quantization.get("desc_act") and settings.is_engine:
        raise BuildError(
            BuildFailure.UNSUPPORTED_MODEL, "config.json: TensorRT-LLM reads no GPTQ checkpoint with desc_act"
        )


def _split(settings: Settings, shape: ModelShape) -> Iterator[BuildError]:
    tensor, pipeline = settings.tensor, settings.pipeline
    heads, pairs = shape.attention_heads, shape.key_value_heads
    if heads % tensor:
        yield _parallel("tensor", f"is {tensor}, and the model's {heads} attention heads are not divisible by it")
    elif pairs % tensor and tensor % pairs:
        yield _parallel(
            "tensor",
            f"is {tensor}, and the model's {pairs} key-value heads can be neither shared out to it nor repeated for it",
        )
    if pipeline > shape.layers:
        yield _parallel("pipeline", f"is {pipeline}, and the model has {shape.layers} layers")
    elif shape.layers % pipeline and settings.is_calibrated:
        yield _parallel(
            "pipeline",
            f"is {pipeline}, and the model's {shape.layers} layers are not divisible by it, as a quantized checkpoint "
            "must be",
        )


def _experts(settings: Settings, shape: ModelShape) -> Iterator[BuildError]:
    for name in ("moe_ep_size", "moe_expert_parallel_size"):
        size = int(settings.options.get(name, 1))
        if size > 1 and not shape.experts:
            yield invalid(name, f"is {size}, and the model has no experts; leave it out")
        elif size > 1 and shape.experts % size:
            yield invalid(name, f"is {size}, and the model's {shape.experts} experts are not divisible by it")


def _lengths(settings: Settings, config: Mapping[str, Any], shape: ModelShape) -> Iterator[BuildError]:
    longest, positions = int(settings.options.get("max_seq_len", 0)), shape.max_positions
    if positions and longest > positions and not config.get("rope_scaling"):
        yield invalid(
            "max_seq_len", f"is {longest}, and the model is made for {positions} positions (max_position_embeddings)"
        )


def _blocks(settings: Settings, shape: ModelShape) -> Iterator[BuildError]:
    """Yield an error where the rows of a GPU are no multiple of AWQ's block size."""
    rows = {
        "attention heads times their size": shape.attention_heads * shape.head_size,
        "intermediate_size": shape.intermediate_size,
    }
    for name, size in rows.items():
        if size and (size // settings.tensor) % settings.block:
            yield invalid(
                "awq_block_size",
                f"is {settings.block}, and {name} {size} over parallelism.tensor {settings.tensor} gives each GPU "
                f"{size // settings.tensor}, no multiple of it; lower one of them",
            )


def _parallel(name: str, message: str) -> BuildError:
    return BuildError(BuildFailure.INVALID_OPTIONS, f"spec.parallelism.{name}: {message}")
