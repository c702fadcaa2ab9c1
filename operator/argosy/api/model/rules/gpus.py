"""Rules between a model's footprint, parallelism and instances."""

from collections.abc import Iterator

from argosy.api.model.footprint import Device, Footprint, Parallelism
from argosy.api.model.instancegroups import group_faults, on_cpu
from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.values.base import Fault, Rule

ON_ONE_GPU = frozenset({"onnxruntime", "tensorrt", "fil"})
"""Backends whose instances run on one GPU, even if the model has several."""


def _gpus_agree(spec: InferenceModelFields) -> Iterator[Fault]:
    footprint = spec.footprint or Footprint()
    needed, declared = spec.parallelism.gpus, footprint.gpus
    if declared and spec.parallelism != Parallelism() and declared != needed:
        yield Fault(
            f"is {declared}, but parallelism.tensor {spec.parallelism.tensor} x pipeline "
            f"{spec.parallelism.pipeline} "
            f"takes {needed}; make them agree or leave out gpus",
            ("footprint", "gpus"),
        )
    if needed > 1 and not declared and footprint.compute:
        yield Fault(
            f"parallelism takes {needed} whole GPUs, so a share of compute means nothing; leave it out",
            ("footprint", "compute"),
        )
    if needed > 1 and footprint.device is Device.CPU:
        yield Fault(
            f"is CPU, but parallelism takes {needed} GPUs; leave out one of the two",
            ("footprint", "device"),
        )


def _one_gpu_backends(spec: InferenceModelFields) -> Iterator[Fault]:
    on_single_gpus = bool(spec.instance_groups) and not any(group.spans for group in spec.instance_groups)
    if spec.backend not in ON_ONE_GPU or spec.gpus <= 1 or on_single_gpus:
        return
    field = ("footprint", "gpus") if spec.footprint and spec.footprint.gpus else ("parallelism",)
    yield Fault(
        f"backend {spec.backend} runs an instance on one GPU, so the others of {spec.gpus} would stay idle; "
        "take one, and raise minReplicas for more copies; or give each an instance with instanceGroups of KIND_GPU",
        field,
    )


def _instances_on_exclusive_gpus(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.instances is not None and spec.instances > 1 and spec.gpus > 1:
        yield Fault(
            f"is {spec.instances}, but one instance takes all {spec.gpus} GPUs; use minReplicas for more copies",
            ("instances",),
        )


def _decided_instances(spec: InferenceModelFields) -> Iterator[Fault]:
    """Check that bounds of instances are left out where other fields decide their number."""
    present = spec.scaling.model_fields_set if spec.scaling else set()
    for name, field in (("min_instances", "minInstances"), ("max_instances", "maxInstances")):
        value = getattr(spec.scaling, name, None)
        if name not in present or value is None or (name, value) == ("min_instances", 1):
            continue
        if spec.instances is not None:
            yield Fault(f"instances is {spec.instances}, and decides; leave out one of the two", ("scaling", field))
        elif spec.instance_groups:
            yield Fault("instanceGroups has the counts, and decides; leave out one of the two", ("scaling", field))
        elif spec.gpus > 1 and value > 1:
            message = f"is {value}, but one instance takes all {spec.gpus} GPUs; use maxReplicas for more copies"
            yield Fault(message, ("scaling", field))


def _one_way_of_instances(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.instances is not None and spec.instance_groups:
        yield Fault("instances and instanceGroups exclude each other; a group has its own count", ("instanceGroups",))


def _groups_have_gpus(spec: InferenceModelFields) -> Iterator[Fault]:
    footprint, groups = spec.footprint or Footprint(), spec.instance_groups
    if on_cpu(groups) and (spec.gpus or footprint.gpu_memory is not None or footprint.device is Device.GPU):
        message = "every group is KIND_CPU, and a GPU is requested; leave out one of the two"
        yield Fault(message, ("instanceGroups",))
        return
    no_gpu = footprint.device is Device.CPU
    for fault in group_faults(groups, spec.gpus or 1, spec.backend, spec.backend in ON_ONE_GPU, no_gpu):
        yield Fault(fault.message, ("instanceGroups", *fault.path))


GPU_RULES = (
    Rule(
        ("footprint", "parallelism"),
        _gpus_agree,
        cel="!has(self.footprint) || !has(self.parallelism) || !has(self.footprint.gpus) || "
        "self.parallelism.tensor * self.parallelism.pipeline == 1 || "
        "self.footprint.gpus == self.parallelism.tensor * self.parallelism.pipeline",
        says="footprint.gpus must be parallelism.tensor x parallelism.pipeline",
    ),
    Rule(
        ("footprint", "parallelism", "instances"),
        _instances_on_exclusive_gpus,
        cel="!has(self.instances) || self.instances == 1 || !has(self.footprint) || "
        "!has(self.footprint.gpus) || self.footprint.gpus <= 1",
        says="a model that takes several GPUs has one instance on them",
    ),
    Rule(("footprint", "parallelism", "model_format", "engine", "instance_groups"), _one_gpu_backends),
    Rule(
        ("instances", "instance_groups"),
        _one_way_of_instances,
        cel="!(has(self.instances) && has(self.instanceGroups) && size(self.instanceGroups) > 0)",
        says="instances and instanceGroups exclude each other",
    ),
    Rule(("instance_groups", "footprint", "parallelism", "model_format", "engine"), _groups_have_gpus),
    Rule(("scaling", "instances", "instance_groups", "footprint", "parallelism"), _decided_instances),
)
