"""The resource InferenceModel: a model to serve."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from argosy.api.engine.engine import Builder
from argosy.api.model.adapters import adapter_faults
from argosy.api.model.chat import chat_rule
from argosy.api.model.configfields import OWN_FILES, check_config, check_own_files
from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.model.placement import SPREAD_RULE
from argosy.api.model.rollout.rollout import Strategy, tolerances_rule
from argosy.api.model.rules.batching import BATCH_RULES
from argosy.api.model.rules.gpus import GPU_RULES
from argosy.api.model.rules.trees import TREE_RULES
from argosy.api.model.rules.variants import VARIANT_RULES
from argosy.api.model.rules.versions import VERSION_RULES
from argosy.api.model.scaling.scale import replicas_in_order
from argosy.api.model.scaling.scaling import scheduled_bounds
from argosy.api.model.variantspecs import variant_spec
from argosy.api.status import InferenceModelStatus
from argosy.api.values.base import Fault, Rule
from argosy.api.values.meta import PoolMember
from argosy.api.values.tensors import unique_names
from argosy_agent.contract.engine_options.checks import parallelism_faults
from argosy_agent.contract.engine_options.requested import DeclaredSizes


def _shape_tensors_need_tensorrt(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.backend == "tensorrt":
        return
    for field, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.is_shape_tensor:
                yield Fault(
                    f"only TensorRT has shape tensors, and backend {spec.backend} runs this; leave it out",
                    (field, index, "isShapeTensor"),
                )


def _builder_reads_format(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.engine is not None and spec.engine.builder.reads != spec.model_format.name:
        yield Fault(
            f"{spec.engine.builder} compiles models of format {spec.engine.builder.reads!r}, "
            f"and modelFormat.name is {spec.model_format.name!r}; change one of them",
            ("engine", "builder"),
        )


def _options_fit_the_parallelism(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.engine is None:
        return
    sizes = DeclaredSizes(spec.parallelism.tensor, spec.parallelism.pipeline, spec.max_batch_size or 0)
    for fault in parallelism_faults(spec.engine.builder, spec.engine.options, sizes):
        yield Fault(fault.message, ("engine", *fault.path))


def _one_engine_for_all_versions(spec: InferenceModelFields) -> Iterator[Fault]:
    """Check that there is one version: Triton's backend for TensorRT-LLM gets one folder for all versions."""
    if spec.engine is None or spec.engine.builder is not Builder.TENSORRT_LLM:
        return
    if len(spec.versions) > 1:
        yield Fault(
            "the server opens one engine of tensorrt_llm for all versions of a model; declare one version, and the "
            "others as models of their own",
            ("versions",),
        )
    if spec.rollout is not None and spec.rollout.strategy is Strategy.SURGE:
        yield Fault(
            "is Surge, which serves two versions at once, and the server opens one engine of tensorrt_llm for all; set "
            "Recreate",
            ("rollout", "strategy"),
        )


def _adapters(spec: InferenceModelFields) -> Iterator[Fault]:
    specs = [variant_spec(spec, variant) for variant in spec.variants] or [spec]
    yield from adapter_faults(spec.adapters, [variant.backend for variant in specs])


def _config_fields(spec: InferenceModelFields) -> Iterator[Fault]:
    for fault in check_config(spec.config):
        yield Fault(fault.message, ("config", *fault.path))


def _own_files(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.engine is not None and OWN_FILES in spec.config:
        yield Fault("is decided by spec.engine; leave one of them out", ("config", OWN_FILES))
        return
    for fault in check_own_files(spec.config, spec.backend):
        yield Fault(fault.message, ("config", *fault.path))


class InferenceModelSpec(InferenceModelFields):
    """The desired state of a model."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *VERSION_RULES,
        *BATCH_RULES,
        *GPU_RULES,
        *TREE_RULES,
        replicas_in_order("min_replicas", "max_replicas"),
        Rule(("scaling", "max_replicas"), scheduled_bounds),
        unique_names("inputs", "inputs"),
        unique_names("outputs", "outputs"),
        Rule(("inputs", "outputs", "model_format", "engine"), _shape_tensors_need_tensorrt),
        Rule(("model_format", "engine"), _builder_reads_format),
        Rule(("engine", "parallelism", "max_batch_size"), _options_fit_the_parallelism),
        Rule(("engine", "versions", "rollout"), _one_engine_for_all_versions),
        Rule(("config",), _config_fields),
        Rule(("config", "engine", "model_format"), _own_files),
        *VARIANT_RULES,
        # With what the spec of a variant is made from.
        Rule(("adapters", "variants", "routing", "model_name", "model_format", "engine"), _adapters),
        chat_rule(),
        tolerances_rule(),
        SPREAD_RULE,
    )


class InferenceModel(PoolMember):
    """A model to serve: what it is, what it needs and how it rolls out. In full: inferencemodels.argosy.dev."""

    api_version: Literal["argosy.dev/v1alpha1"] = Field(
        default="argosy.dev/v1alpha1", description="The API's group and version."
    )
    kind: Literal["InferenceModel"] = Field(default="InferenceModel", description="InferenceModel.")
    spec: InferenceModelSpec = Field(description="The desired state. The operator never writes it.")
    status: InferenceModelStatus | None = Field(
        default=None, description="The observed state, written by the operator."
    )
