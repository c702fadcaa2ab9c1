"""Where a model or an ensemble may run: the kind of GPU, and the nodes."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.capability import CapabilityText
from argosy.api.values.meta import LABEL_KEY, LABEL_VALUE, Name


def _one_line(value: str) -> str:
    """Reject a final newline, before which a pattern's `$` matches, too."""
    if "\n" in value:
        raise ValueError("must be one line")
    return value


HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
"""The labels of a node by which replicas are apart unless something else is declared."""
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


class WhenUnsatisfiable(StrEnum):
    """What becomes of a replica that would be too close to others."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


def _domains_of_what_is_required(constraint: "TopologySpreadConstraint") -> Iterator[Fault]:
    if constraint.min_domains is not None and constraint.when_unsatisfiable is not WhenUnsatisfiable.DO_NOT_SCHEDULE:
        message = "has an effect with whenUnsatisfiable: DoNotSchedule alone; leave it out, or require the spread"
        yield Fault(message, ("minDomains",))


class TopologySpreadConstraint(ApiModel):
    """Replicas are spread over the values of one label of nodes."""

    topology_key: LabelKey = Field(
        description="The label, such as kubernetes.io/hostname or topology.kubernetes.io/zone; nodes with the same "
        "value are one domain. Without the label a node is in no domain."
    )
    when_unsatisfiable: WhenUnsatisfiable = Field(
        description="DoNotSchedule: of R replicas on D domains that could have one, each has at most R / D, rounded "
        "up, and no more domains have so many than must; others are not placed. ScheduleAnyway: preferred where that "
        "takes no further GPU."
    )
    min_domains: Int | None = Field(
        default=None,
        ge=1,
        le=10000,
        description="With fewer domains than so many each has at most one replica: 2 lets two replicas be in two zones "
        "or not at all. For DoNotSchedule. Default: 1.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("when_unsatisfiable", "min_domains"),
            _domains_of_what_is_required,
            cel="!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
            says="minDomains is for whenUnsatisfiable: DoNotSchedule",
        ),
    )


def _unique_keys(spec: ApiModel) -> Iterator[Fault]:
    seen: set[str] = set()
    constraints: tuple[TopologySpreadConstraint, ...] = getattr(spec, "topology_spread")  # noqa: B009
    for index, constraint in enumerate(constraints):
        if constraint.topology_key in seen:
            message = f"{constraint.topology_key!r} is listed twice; list it once"
            yield Fault(message, ("topologySpread", index, "topologyKey"))
        seen.add(constraint.topology_key)


SPREAD_RULE = Rule(("topology_spread",), _unique_keys)
TopologySpread = Annotated[
    tuple[TopologySpreadConstraint, ...],
    Field(
        max_length=8,
        description="How replicas are spread, as a Pod's topologySpreadConstraints with maxSkew 1. They are on "
        "different servers in any case. Default: different nodes are preferred, then different zones; so they are next "
        "to other keys that are listed.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topologyKey"]},
    ),
]


class Level(StrEnum):
    """What two models do not share."""

    SERVER = "Server"
    NODE = "Node"


class AffinityTerm(ApiModel):
    """A model or an ensemble to be with."""

    name: Name = Field(description="The InferenceModel or Ensemble, in the same pool.")


class AntiAffinityTerm(ApiModel):
    """A model or an ensemble to be apart from."""

    name: Name = Field(description="The InferenceModel or Ensemble, in the same pool.")
    level: Level = Field(
        default=Level.SERVER,
        description="Server: no server, and so no GPU, has replicas of both; Node: no node has. Default: Server.",
    )


Affinity = Annotated[
    tuple[AffinityTerm, ...],
    Field(
        max_length=32,
        description="Models and ensembles that share its servers: each replica has one of theirs next to it, as in an "
        "ensemble, so all of them have as many replicas as the one with most. Default: none.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
]
AntiAffinity = Annotated[
    tuple[AntiAffinityTerm, ...],
    Field(
        max_length=32,
        description="Models and ensembles that it is kept apart from, which counts for both of them. Default: none.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
]
