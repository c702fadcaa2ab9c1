"""Where a model or an ensemble may run: the kind of GPU, and the nodes."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.capability import CapabilityText
from argosy.api.values.meta import LABEL_KEY, LABEL_VALUE


def _one_line(value: str) -> str:
    """Reject a final newline, before which a pattern's `$` matches, too."""
    if "\n" in value:
        raise ValueError("must be one line")
    return value


LabelKey = Annotated[str, StringConstraints(min_length=1, max_length=317, pattern=LABEL_KEY), AfterValidator(_one_line)]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE), AfterValidator(_one_line)]
Product = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL_VALUE), AfterValidator(_one_line)]


def _says_something(gpu_type: "GpuType") -> Iterator[Fault]:
    if not gpu_type.products and gpu_type.compute_capability is None:
        yield Fault('names no GPU; set products or computeCapability, such as ">= 8.9", or leave gpuType out')


class GpuType(ApiModel):
    """The GPUs that a model may run on: those that both fields accept."""

    products: tuple[Product, ...] = Field(
        default=(),
        max_length=32,
        description="Products, as the node's label nvidia.com/gpu.product has them, such as NVIDIA-H100-80GB-HBM3; one "
        "of them. Default: any.",
    )
    compute_capability: CapabilityText | None = Field(
        default=None,
        description='NVIDIA\'s compute capability, such as ">= 8.9" or ">= 8.0, < 9.0". Default: what follows from '
        "declared precisions: 8.0 or more for bf16 and tf32, 8.9 for fp8, 10.0 for fp4; else any.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("products", "compute_capability"),
            _says_something,
            cel="has(self.computeCapability) || (has(self.products) && size(self.products) > 0)",
            says="gpuType has products or computeCapability",
        ),
    )


NodeSelector = Annotated[
    dict[LabelKey, LabelValue],
    Field(
        max_length=64,
        description="Labels that a node must have, in addition to those of the pool's nodeSelector; the models of an "
        "ensemble share a server, whose node has the labels of all of them. Default: any node of the pool.",
    ),
]
