"""Groups of a model's instances and their rate limiter, as ModelInstanceGroup has them."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from argosy.api.model.footprint import MAX_GPUS
from argosy.api.values.base import ApiModel, Fault, Flag, Int, Rule
from argosy.api.values.tensors import BY_NAME


class GroupKind(StrEnum):
    """The devices of a group's instances."""

    AUTO = "KIND_AUTO"
    GPU = "KIND_GPU"
    CPU = "KIND_CPU"
    MODEL = "KIND_MODEL"


class RateResource(ApiModel):
    """A resource that an execution takes and returns."""

    name: str = Field(min_length=1, max_length=256, description="The resource's name, the same in all models.")
    count: Int = Field(default=1, ge=1, le=2**31 - 1, description="How much of it an execution takes. Default: 1.")
    global_: Flag = Field(
        default=False,
        alias="global",
        description="Whether the server has the resource once, instead of once for each device. Default: false.",
    )


def _one_scope(limiter: "RateLimiter") -> Iterator[Fault]:
    seen: set[str] = set()
    for index, resource in enumerate(limiter.resources):
        if resource.name in seen:
            yield Fault(f"{resource.name!r} is listed twice; list it once", ("resources", index, "name"))
        seen.add(resource.name)


class RateLimiter(ApiModel):
    """When an instance may run: once its resources are free, in turn by priority."""

    resources: tuple[RateResource, ...] = Field(
        default=(),
        max_length=32,
        description="The resources that an execution takes. Default: none.",
        json_schema_extra=BY_NAME,
    )
    priority: Int = Field(
        default=0,
        ge=0,
        le=2**32 - 1,
        description="The inverse weight of its executions: an instance of priority 2 gets half as many turns as one of "
        "priority 1. Default: 0, which is treated as 1.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("resources",), _one_scope),)


def _gpus_of_the_kind(group: "InstanceGroup") -> Iterator[Fault]:
    if group.gpus and group.kind in (GroupKind.CPU, GroupKind.MODEL):
        yield Fault(f"a group of {group.kind} names no GPUs; leave them out, or make it KIND_GPU", ("gpus",))
    for index, gpu in enumerate(group.gpus):
        if gpu in group.gpus[:index]:
            yield Fault(f"GPU {gpu} is listed twice; list it once", ("gpus", index))


class InstanceGroup(ApiModel):
    """A group of equal instances."""

    name: str = Field(default="", max_length=256, description="The group's name. Default: the server's.")
    kind: GroupKind = Field(
        default=GroupKind.AUTO,
        description="KIND_GPU: an instance uses one GPU; KIND_CPU: the CPU; KIND_MODEL: all of the model's GPUs; "
        "KIND_AUTO: what suits the backend and the model's placement. Default: KIND_AUTO.",
    )
    count: Int = Field(default=1, ge=1, le=256, description="Instances on each of its devices. Default: 1.")
    gpus: tuple[Annotated[Int, Field(ge=0, lt=MAX_GPUS)], ...] = Field(
        default=(),
        max_length=MAX_GPUS,
        description="The GPUs of the group, by their index among the model's own GPUs, from 0. Default: all of them.",
    )
    profile: tuple[Annotated[Int, Field(ge=0, le=2**31 - 1)], ...] = Field(
        default=(), max_length=64, description="TensorRT's optimization profiles, by number. Default: the first one."
    )
    passive: Flag = Field(
        default=False, description="Whether its instances are loaded but get no requests. Default: false."
    )
    rate_limiter: RateLimiter | None = Field(
        default=None, description="The rate limiter of its instances. Default: spec.rateLimiter."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("kind", "gpus"),
            _gpus_of_the_kind,
            cel="!has(self.gpus) || size(self.gpus) == 0 || !has(self.kind) || "
            "!(self.kind in ['KIND_CPU', 'KIND_MODEL'])",
            says="a group of KIND_CPU or KIND_MODEL names no GPUs",
        ),
    )

    @property
    def spans(self) -> bool:
        """Whether one instance uses all GPUs of the model."""
        return self.kind is GroupKind.MODEL or (self.kind is GroupKind.AUTO and not self.gpus)

    def is_on(self, gpu: int) -> bool:
        """Return whether it has instances on the GPU with this index among the model's."""
        return self.kind is not GroupKind.CPU and (not self.gpus or gpu in self.gpus)


def per_gpu(groups: Sequence[InstanceGroup], gpus: int) -> int:
    """Return the most instances on one of this many GPUs."""
    return max(sum(group.count for group in groups if group.is_on(gpu)) for gpu in range(gpus))


def on_cpu(groups: Sequence[InstanceGroup]) -> bool:
    """Return whether there are groups, and none of them is on a GPU."""
    return bool(groups) and all(group.kind is GroupKind.CPU for group in groups)


def group_faults(
    groups: Sequence[InstanceGroup], gpus: int, backend: str, on_one_gpu: bool, no_gpu: bool
) -> Iterator[Fault]:
    """Yield the errors of the groups of a model with this many GPUs, with paths in the list.

    `on_one_gpu` says that the backend's instances run on one GPU, `no_gpu` that the model runs on the CPU.
    """
    for index, group in enumerate(groups):
        for message, field in _wrong(group, gpus, backend, on_one_gpu, no_gpu):
            yield Fault(message, (index, *field))
    if gpus > 1 and groups and not any(group.spans for group in groups):
        idle = [gpu for gpu in range(gpus) if not any(group.is_on(gpu) for group in groups)]
        if idle:
            named = ", ".join(map(str, idle))
            yield Fault(f"no group is on GPU {named} of the model's {gpus}; add one, or take fewer GPUs")


def _wrong(
    group: InstanceGroup, gpus: int, backend: str, on_one_gpu: bool, no_gpu: bool
) -> Iterable[tuple[str, tuple[str | int, ...]]]:
    if no_gpu and group.kind in (GroupKind.GPU, GroupKind.MODEL):
        yield "footprint.device is CPU, so there is no GPU for it; make it KIND_CPU, or change the device", ("kind",)
    for at, gpu in enumerate(group.gpus):
        if gpu >= gpus:
            yield f"the model takes {gpus} GPU{'s' if gpus > 1 else ''}, counted from 0; found {gpu}", ("gpus", at)
    if on_one_gpu and group.kind is GroupKind.MODEL:
        yield f"backend {backend} would run KIND_MODEL on the CPU; make it KIND_GPU", ("kind",)
    if group.profile and backend != "tensorrt":
        yield f"only TensorRT has profiles, and backend {backend} runs this; leave it out", ("profile",)
    if gpus > 1 and group.spans and group.count > 1:
        message = f"is {group.count}, but one instance takes all {gpus} GPUs; use minReplicas for more copies"
        yield message, ("count",)
