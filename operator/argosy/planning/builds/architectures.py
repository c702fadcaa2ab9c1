"""Architectures of a model's engines: those of the GPUs of the nodes that it may run on, or of their CPUs."""

from collections.abc import Collection

from argosy.api.engine.engine import Builder
from argosy.api.inferencemodel import InferenceModel
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.nodes.pool_nodes import PoolNodes

NEED_GPUS = (Builder.TENSORRT, Builder.TENSORRT_LLM)
"""Builders whose engines run on no CPU."""


def architectures(nodes: PoolNodes, model: InferenceModel, built: Collection[str] = ()) -> frozenset[str]:
    """Return the architectures to build a model's engines for. Empty where none of the pool's nodes can run it.

    Nodes that take nothing new count only for architectures in `built`, for which there is a build already: what runs
    there stays.
    """
    on_gpu = runs_on_gpu(nodes, model)
    if not on_gpu and _needs_gpus(model):
        return frozenset()
    able = [node for node in nodes.selected if not on_gpu or any(not gpu.is_cpu for gpu in node.gpus)]
    names = {node.architecture(on_gpu) for node in able if node.schedulable or node.architecture(on_gpu) in built}
    return frozenset(names - {""})


def runs_on_gpu(nodes: PoolNodes, model: InferenceModel) -> bool:
    """Return whether a model runs on GPUs in this pool."""
    return nodes.has_gpus and not footprint_of(model, has_gpus=True).on_cpu


def why_no_architecture(nodes: PoolNodes, model: InferenceModel) -> str:
    """Return why there is nothing to build a model for, and the way out."""
    on_gpu = runs_on_gpu(nodes, model)
    if not on_gpu and model.spec.engine is not None and _needs_gpus(model):
        return f"{model.spec.engine.builder} compiles for GPUs, and it would run on a CPU here. Add a node with GPUs"
    unnamed = [node.name for node in nodes.selected if node.gpus and not node.architecture(on_gpu=True)]
    if on_gpu and unnamed:
        return (
            f"node {unnamed[0]} does not say which GPUs it has. Install NVIDIA's GPU feature discovery, or give it "
            "the labels nvidia.com/gpu.compute.major and nvidia.com/gpu.compute.minor"
        )
    return "the pool has no ready node that takes new Pods and could run it. Add one, or change nodeSelector"


def _needs_gpus(model: InferenceModel) -> bool:
    return model.spec.engine is not None and model.spec.engine.builder in NEED_GPUS
