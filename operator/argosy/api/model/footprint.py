"""The GPU memory and compute that a model uses, its parallelism, and the traffic on which the best one depends."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from argosy.api.model.placement import GpuType
from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.quantity import Quantity, Share

MAX_GPUS = 64


class Device(StrEnum):
    """The device that runs a model."""

    GPU = "GPU"
    CPU = "CPU"


def _share_of_one(footprint: "Footprint") -> Iterator[Fault]:
    if footprint.gpus and footprint.compute:
        yield Fault(
            "whole GPUs are taken alone, so a share of compute means nothing; leave out compute or gpus",
            ("compute",),
        )
    if footprint.compute and footprint.gpu_memory is None and footprint.gpus is None:
        yield Fault("a share of a GPU needs its memory too; set gpuMemory, such as 2Gi", ("gpuMemory",))


def _some_memory(footprint: "Footprint") -> Iterator[Fault]:
    if footprint.gpu_memory == 0:
        yield Fault("must be more than 0; for no GPU set device: CPU instead", ("gpuMemory",))


def _nothing_of_a_gpu_on_the_cpu(footprint: "Footprint") -> Iterator[Fault]:
    if footprint.device is not Device.CPU:
        return
    for field in ("gpu_memory", "compute", "gpus", "gpu_type"):
        if getattr(footprint, field) is not None:
            name = Footprint.model_fields[field].alias or field
            yield Fault(f"device CPU takes no GPU, and {name} is given; leave out one of the two", ("device",))


class Footprint(ApiModel):
    """What one instance uses: a share of a GPU, whole GPUs, or none. Unset fields are unknown."""

    device: Device | None = Field(
        default=None,
        description="GPU or CPU. Default: GPU if gpuMemory or gpus is set; else, in a pool that has GPUs, the CPU "
        "for the format python and a GPU for others.",
    )
    gpu_memory: Quantity | None = Field(
        default=None,
        description="Memory on each GPU that it uses, as a quantity such as 16Gi. Default: unknown, so that it "
        "shares no GPU until it is measured.",
    )
    compute: Share | None = Field(
        default=None, description='The share of one GPU\'s compute that it keeps busy, as "10%". Default: unknown.'
    )
    gpus: Int | None = Field(
        default=None,
        ge=1,
        le=MAX_GPUS,
        description="The number of exclusive GPUs, placed where NVLink joins them. Default: a share of one GPU if "
        "gpuMemory is set.",
    )
    gpu_type: GpuType | None = Field(
        default=None,
        description="The kinds of GPU that it may run on. Default: those that have the declared precisions.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("gpu_memory", "compute", "gpus"),
            _share_of_one,
            cel="!has(self.gpus) || !has(self.compute) || self.compute.matches('^0+([.]0)?%$')",
            says="whole GPUs are taken alone: leave out compute or gpus",
        ),
        Rule(("gpu_memory",), _some_memory),
        Rule(
            ("device", "gpu_memory", "compute", "gpus", "gpu_type"),
            _nothing_of_a_gpu_on_the_cpu,
            cel="!has(self.device) || self.device != 'CPU' || "
            "!(has(self.gpuMemory) || has(self.compute) || has(self.gpus) || has(self.gpuType))",
            says="device CPU takes no GPU: leave out device, or gpuMemory, compute, gpus and gpuType",
        ),
    )


class Parallelism(ApiModel):
    """How one replica of a model is split over tensor x pipeline whole GPUs."""

    tensor: Int = Field(
        default=1, ge=1, le=MAX_GPUS, description="Tensor parallelism: the GPUs that share each layer. Default: 1."
    )
    pipeline: Int = Field(
        default=1,
        ge=1,
        le=MAX_GPUS,
        description="Pipeline parallelism: the groups of layers, executed one after the other. Default: 1.",
    )

    @property
    def gpus(self) -> int:
        """The number of GPUs of one replica."""
        return self.tensor * self.pipeline


class Traffic(ApiModel):
    """The mean lengths of prompts and answers."""

    prompt_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of a request's prompt, on average.")
    output_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of its answer, on average.")

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt_tokens + self.output_tokens
