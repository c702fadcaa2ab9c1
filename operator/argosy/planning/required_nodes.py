"""What a model requires of its node: declared labels and GPUs, and the GPUs that have the declared precisions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.footprint import Device, Footprint
from argosy.api.values.capability import CapabilityRange, at_least
from argosy.planning.requirements import NOTHING, NodeRequirements
from argosy_agent.contract.engine_options.precisions import FIRST_CAPABILITY, Precision

P = Precision
VLLM_PRECISIONS: Mapping[tuple[str, str], Precision] = {
    ("dtype", "bfloat16"): P.BF16,
    ("kv_cache_dtype", "fp8"): P.FP8,
    ("kv_cache_dtype", "fp8_e4m3"): P.FP8,
    ("quantization", "fp8"): P.FP8,
    ("quantization", "fbgemm_fp8"): P.FP8,
    ("quantization", "modelopt"): P.FP8,
    ("quantization", "modelopt_fp4"): P.FP4,
}
"""Arguments of vLLM's engine by which a model is of a precision. That of its files is not known before it is loaded."""
OPTION_PRECISIONS: Mapping[tuple[str, str], Precision] = {
    ("kv_cache_dtype", "fp8"): P.FP8,
    ("kv_cache_config.dtype", "fp8"): P.FP8,
    ("kv_cache_config.dtype", "nvfp4"): P.FP4,
    ("gemm_plugin", "fp8"): P.FP8,
    ("gemm_plugin", "nvfp4"): P.FP4,
    ("gemm_swiglu_plugin", "fp8"): P.FP8,
    ("low_latency_gemm_plugin", "fp8"): P.FP8,
}
"""Options of engines by which these are of a precision, in addition to `engine.precision`."""


def requirements_of(model: InferenceModel, users: Iterable[Ensemble] = ()) -> NodeRequirements:
    """Return what a model, and the ensembles that run it, require of its node.

    A declared `computeCapability` is taken in place of what follows from precisions.
    """
    labels = {(key, value) for member in (model, *users) for key, value in member.spec.node_selector.items()}
    required = _required(model, tuple(sorted(labels)))
    return NOTHING if required == NOTHING else required


def _required(model: InferenceModel, ordered: tuple[tuple[str, str], ...]) -> NodeRequirements:
    if model.spec.device is Device.CPU:
        return NodeRequirements(ordered)
    gpu_type = (model.spec.footprint or Footprint()).gpu_type
    products = frozenset(gpu_type.products) if gpu_type is not None else frozenset[str]()
    if gpu_type is not None and gpu_type.compute_capability is not None:
        declared = CapabilityRange.parse(gpu_type.compute_capability)
        return NodeRequirements(ordered, products, declared, "footprint.gpuType.computeCapability")
    first, because = max(_of_precisions(model), default=(0.0, ""))
    if not first:
        return NodeRequirements(ordered, products)
    return NodeRequirements(ordered, products, at_least(first), because, gpus_only=gpu_type is None)


def _of_precisions(model: InferenceModel) -> Iterator[tuple[float, str]]:
    """Yield the first compute capability that has each declared precision, and the field that declares it."""
    for field, precision in _declared_precisions(model):
        if precision in FIRST_CAPABILITY:
            yield FIRST_CAPABILITY[precision], field


def _declared_precisions(model: InferenceModel) -> Iterator[tuple[str, Precision]]:
    spec = model.spec
    if spec.engine is not None:
        if spec.engine.precision is not None:
            yield f"engine.precision {spec.engine.precision}", spec.engine.precision
        for name, value in _options(spec.engine.options):
            if (name, value) in OPTION_PRECISIONS:
                yield f"engine.options.{name} {value}", OPTION_PRECISIONS[name, value]
    if spec.backend == "vllm":
        for name, value in _parameters(spec.config):
            if (name, value) in VLLM_PRECISIONS:
                yield f"config.parameters.{name} {value}", VLLM_PRECISIONS[name, value]


def _options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options that are texts, those of an inner map as `kv_cache_config.dtype`."""
    for name, value in options.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        texts = [(name, value), *((f"{name}.{key}", one) for key, one in inner)]
        yield from ((path, text) for path, text in texts if isinstance(text, str))


def _parameters(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the `parameters` of a configuration, by either of the names that JSON has for their field."""
    for name, value in (config.get("parameters") or {}).items():
        yield name, str(value.get("string_value", value.get("stringValue", "")))
