"""What a model takes of the GPUs, and how it is split over several."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from argosy.api.base import ApiModel, Fault, Int, Rule
from argosy.api.quantity import Quantity, Share

MAX_GPUS = 64


def _share_of_one(footprint: "Footprint") -> Iterator[Fault]:
    if footprint.gpus and footprint.compute:
        yield Fault(
            "whole GPUs are taken alone, so a share of compute means nothing; leave out compute or gpus",
            ("compute",),
        )
    if footprint.compute and not footprint.gpu_memory and not footprint.gpus:
        yield Fault("a share of a GPU needs its memory too; set gpuMemory, such as 2Gi", ("gpuMemory",))


class Footprint(ApiModel):
    """What one instance takes: a share of a GPU, or whole GPUs. Nothing set: it runs on the CPU."""

    gpu_memory: Quantity = Field(
        default=0, description="Memory on each GPU it uses, as a quantity such as 16Gi. Default: 0, no GPU."
    )
    compute: Share = Field(
        default=0,
        description='The share of one GPU\'s compute it keeps busy, as "10%". Default: "0%".',
        json_schema_extra={"default": "0%"},
    )
    gpus: Int = Field(
        default=0,
        ge=0,
        le=MAX_GPUS,
        description="Whole GPUs it takes for itself, planned where NVLink joins them. Default: 0, a share.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("gpu_memory", "compute", "gpus"),
            _share_of_one,
            cel="self.gpus == 0 || self.compute.matches('^0+([.]0)?%$')",
            says="whole GPUs are taken alone: leave out compute or gpus",
        ),
    )


class Parallelism(ApiModel):
    """How one copy of a model is split: tensor x pipeline whole GPUs."""

    tensor: Int = Field(default=1, ge=1, le=MAX_GPUS, description="GPUs that share each layer. Default: 1.")
    pipeline: Int = Field(
        default=1, ge=1, le=MAX_GPUS, description="Groups of layers, one after the other. Default: 1."
    )

    @property
    def gpus(self) -> int:
        """GPUs that one copy needs."""
        return self.tensor * self.pipeline
