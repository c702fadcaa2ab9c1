"""For what a model's engines are compiled: the GPUs of the nodes that it may run on, or their CPUs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from argosy.api.engine.engine import Builder
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.pool_facts import uses_gpus
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.nodes.selection import selected

NEED_GPUS = (Builder.TENSORRT, Builder.TENSORRT_LLM)
"""Builders whose engines no CPU runs."""


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The nodes that a pool's servers may run on. `has_gpus`: whether models count on GPUs there.

    `every` has also those that the pool does not select, by name.
    """

    selected: tuple[Node, ...]
    has_gpus: bool
    every: Mapping[str, Node]

    @classmethod
    def of(
        cls,
        pool: ServingPool,
        nodes: Sequence[Node],
        current: Sequence[CurrentServer] = (),
        former: Sequence[CurrentServer] = (),
    ) -> "PoolNodes":
        """Return those of one pool; `current` are the servers that run, `former` those there were."""
        here = selected(pool, nodes, {server.node for server in current})
        has_gpus = uses_gpus(pool, here, (*current, *former))
        return cls(here, has_gpus, {node.name: node for node in nodes})

    def architectures(self, model: InferenceModel, known: Collection[str] = ()) -> frozenset[str]:
        """Return what a model with an engine is to be built for: nothing where none of the nodes can run it.

        Of nodes that take nothing new those count for which something is `known` already: what is there stays.
        """
        on_gpu = self.on_gpu(model)
        if not on_gpu and model.spec.engine is not None and model.spec.engine.builder in NEED_GPUS:
            return frozenset()
        able = [node for node in self.selected if not on_gpu or any(not gpu.is_cpu for gpu in node.gpus)]
        found = {node.architecture(on_gpu) for node in able if node.schedulable or node.architecture(on_gpu) in known}
        return frozenset(found - {""})

    def on_gpu(self, model: InferenceModel) -> bool:
        """Return whether it runs on GPUs here."""
        return self.has_gpus and not footprint_of(model, has_gpus=self.has_gpus).on_cpu

    def why_none(self, model: InferenceModel) -> str:
        """Return why there is nothing to build a model for, and the way out."""
        if not self.on_gpu(model) and model.spec.engine is not None and model.spec.engine.builder in NEED_GPUS:
            return (
                f"{model.spec.engine.builder} compiles for GPUs, and it would run on a CPU here. Add a node with GPUs"
            )
        unknown = [node.name for node in self.selected if node.gpus and not node.architecture(on_gpu=True)]
        if self.on_gpu(model) and unknown:
            return (
                f"node {unknown[0]} does not say which GPUs it has. Install NVIDIA's GPU feature discovery, or give it "
                "the labels nvidia.com/gpu.compute.major and nvidia.com/gpu.compute.minor"
            )
        return "the pool has no ready node that takes new Pods and could run it. Add one, or change nodeSelector"
