"""What a model requires of the node that it runs on: labels, and a kind of GPU."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from argosy.api.values.capability import CapabilityRange

ANY = CapabilityRange()


@dataclass(frozen=True, slots=True)
class NodeRequirements:
    """Labels that a node must have, and the products and compute capabilities of its GPUs that will do; without
    `products` all do.

    `because`: where the capability comes from, as `engine.precision fp8`. `gpus_only`: it follows from a precision and
    was not asked for, so that it says nothing of a CPU in a GPU's place.
    """

    labels: tuple[tuple[str, str], ...] = ()
    products: frozenset[str] = frozenset()
    capability: CapabilityRange = ANY
    because: str = ""
    gpus_only: bool = False

    def lacking(self, labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the required labels that are not among a node's."""
        return tuple((key, value) for key, value in self.labels if labels.get(key) != value)

    def accepts_gpus(self, product: str, capability: str, has_gpus: bool) -> bool:
        """Return whether GPUs will do, given their product and compute capability; an unknown one will not."""
        if not has_gpus and self.gpus_only:
            return not self.products
        return (not self.products or product in self.products) and self.capability.accepts(capability)

    @property
    def gpus_text(self) -> str:
        """The GPUs that will do, in words; empty if all do."""
        products = [f"a GPU of product {' or '.join(sorted(self.products))}"] if self.products else []
        range_ = f"compute capability {self.capability} ({self.because})" if self.capability.terms else ""
        return " and ".join([*products, *([range_ if products else f"a GPU of {range_}"] if range_ else [])])


NOTHING = NodeRequirements()
"""Any node will do."""


def contradiction(one: NodeRequirements, other: NodeRequirements) -> str:
    """Return why no node has what both require, as `disk=ssd and disk=hdd`; empty if one may."""
    mine = dict(one.labels)
    for key, value in other.labels:
        if mine.get(key, value) != value:
            return f"{key}={mine[key]} and {key}={value}"
    if one.products and other.products and not one.products & other.products:
        return f"{one.gpus_text}, and {other.gpus_text}"
    if not one.capability.also(other.capability).any():
        return f"{one.gpus_text}, and {other.gpus_text}"
    return ""


def label_keys(every: Iterable[NodeRequirements]) -> frozenset[str]:
    """Return the keys of all labels that are required."""
    return frozenset(key for one in every for key, _ in one.labels)
