"""A fleet as the operator reads it: manifests of pools, models and ensembles, and the cluster's Nodes."""

from collections.abc import Iterator
from typing import Any

from benchmarks.packing.fleets.fleet import Ensemble, Fleet, Machine, Model, Pool

Document = dict[str, Any]
_VERSION = "argosy.dev/v1alpha1"
_TENSOR = {"dataType": "TYPE_FP32", "dims": [16]}


def manifests(fleet: Fleet) -> Iterator[Document]:
    """Yield the manifests of a fleet."""
    yield from (_pool(pool, fleet.headroom) for pool in fleet.pools)
    yield from (_model(model) for model in fleet.models)
    yield from (_ensemble(ensemble) for ensemble in fleet.ensembles)


def nodes(fleet: Fleet) -> Iterator[Document]:
    """Yield the Nodes of a fleet, with the labels of GPU feature discovery."""
    yield from (_node(machine) for machine in fleet.machines)


def _document(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _pool(pool: Pool, headroom: int) -> Document:
    selector = {"nodeSelector": {"nvidia.com/gpu.product": pool.product}} if pool.product else {}
    return _document("ServingPool", pool.name, {"memoryHeadroom": f"{headroom / 10:g}%", **selector})


def _model(model: Model) -> Document:
    needs: Document = {"device": "CPU"} if model.on_cpu else {"gpuMemory": f"{model.mib}Mi"}
    needs |= {"compute": f"{model.compute / 10:g}%"} if model.compute else {}
    needs |= {"gpus": model.gpus} if model.gpus else {}
    return _document(
        "InferenceModel",
        model.name,
        {
            "poolRef": {"name": model.pool},
            "modelFormat": {"name": "python" if model.on_cpu or model.gpus else "onnx"},
            "version": 1,
            "storageUri": f"s3://models/{model.name}/1",
            "footprint": needs,
            "replicas": model.replicas,
            "inputs": [{"name": "x", **_TENSOR}],
            "outputs": [{"name": "y", **_TENSOR}],
        },
    )


def _ensemble(ensemble: Ensemble) -> Document:
    names = ["x", *(f"t{at}" for at in range(1, len(ensemble.steps))), "y"]
    steps = [
        {"model": step, "inputs": {"x": names[at]}, "outputs": {"y": names[at + 1]}}
        for at, step in enumerate(ensemble.steps)
    ]
    return _document(
        "Ensemble",
        ensemble.name,
        {
            "poolRef": {"name": ensemble.pool},
            "version": 1,
            "replicas": ensemble.replicas,
            "inputs": [{"name": "x", **_TENSOR}],
            "outputs": [{"name": "y", **_TENSOR}],
            "steps": steps,
        },
    )


def _node(machine: Machine) -> Document:
    gpus = {"cpu": "96", "memory": "1056690Mi", "nvidia.com/gpu": str(machine.gpus)}
    nvlink = ";".join(",".join(map(str, domain)) for domain in machine.domains) or "none"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": {
                "nvidia.com/gpu.product": machine.product,
                "nvidia.com/gpu.memory": str(machine.mib),
                "nvidia.com/gpu.count": str(machine.gpus),
            },
            "annotations": {"argosy.dev/nvlink": nvlink},
        },
        "status": {"allocatable": gpus, "capacity": gpus, "conditions": [{"type": "Ready", "status": "True"}]},
    }
