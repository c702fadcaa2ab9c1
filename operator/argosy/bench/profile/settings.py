"""The proposal as a patch of the model's manifest, and all that was measured as a document."""

from typing import Any, Final

from argosy.api import InferenceModel
from argosy.api.model.footprint import Device
from argosy.api.model.modelfields import InferenceModelFields as ModelSpec
from argosy.bench.profile.points import Memory, Sweep
from argosy.bench.profile.proposal import Proposal, knee
from argosy.planning.amounts import mebibytes

_BOUNDS: Final = {"min_instances": "minInstances", "max_instances": "maxInstances"}
"""The fields of spec.scaling that bound instances."""


def gpu_memory(memory: Memory, instances: int) -> str | None:
    """Return the bytes of a GPU for one instance as a manifest has them; None where there are none."""
    if not memory.gpu:
        return None
    return mebibytes(-(-memory.gpu // instances))


def patch(model: InferenceModel, proposal: Proposal) -> dict[str, Any]:
    """Return the merge patch of a model, to keep next to its manifest or to apply by kubectl.

    It has every setting that was measured, and a null for what the manifest has and the measurement had not: the
    patched manifest is valid, and what is served by it is what was measured.
    """
    point, declared = proposal.point, model.spec
    spec: dict[str, Any] = {"instances": point.instances}
    if declared.max_batch_size != 0:
        spec["maxBatchSize"] = point.batch
        spec |= {"batching": batching} if (batching := _batching(declared, proposal)) else {}
    if bounds := _bounds_of_instances(declared):
        spec["scaling"] = dict.fromkeys(bounds)
    memory = gpu_memory(point.memory, point.instances)
    if memory is not None and (declared.footprint is None or declared.footprint.device is not Device.CPU):
        spec["footprint"] = {"gpuMemory": memory}
    return {
        "apiVersion": model.api_version,
        "kind": model.kind,
        "metadata": {"name": model.name, "namespace": model.namespace},
        "spec": spec,
    }


def _batching(declared: ModelSpec, proposal: Proposal) -> dict[str, Any]:
    """Return how requests are joined; nothing for a model that joins none now and is to join none."""
    point, former = proposal.point, declared.batching
    if point.batch < 2 and former is None:
        return {}
    batching: dict[str, Any] = {"maxQueueDelayMicroseconds": round(proposal.delay * 1e6)}
    if proposal.preferred:
        batching["preferredBatchSizes"] = [*proposal.preferred, point.batch]
    elif former is not None and former.preferred_batch_sizes:
        batching["preferredBatchSizes"] = None
    return batching


def _bounds_of_instances(declared: ModelSpec) -> list[str]:
    """Return the bounds of instances in the manifest, which a number of instances excludes."""
    scaling = declared.scaling
    if scaling is None:
        return []
    return [field for name, field in _BOUNDS.items() if name in scaling.model_fields_set]


def document(sweep: Sweep, proposal: Proposal | None, *, takes_batches: bool = True) -> dict[str, Any]:
    """Return points, failures, the knee of each number of instances, and the proposal, as plain values. A model that
    takes no batches keeps its maxBatchSize of 0.
    """
    knees = {count: knee(sweep.curve(count)) for count in sweep.instances}
    return {
        "version": 1,
        "points": [
            {
                "instances": point.instances,
                "batch": point.batch,
                "rowsPerSecond": round(point.throughput, 3),
                "p50Seconds": round(point.p50, 6),
                "p95Seconds": round(point.p95, 6),
                "requests": point.requests,
                "hostBytes": point.memory.host,
                "gpuBytes": point.memory.gpu,
            }
            for point in sweep.points
        ],
        "failures": [
            {"instances": one.instances, "batch": one.batch, "message": one.message} for one in sweep.failures
        ],
        "knees": {str(count): point.batch for count, point in knees.items() if point is not None},
        "proposal": None
        if proposal is None
        else {
            "instances": proposal.point.instances,
            "maxBatchSize": proposal.point.batch if takes_batches else 0,
            "preferredBatchSizes": list(proposal.preferred),
            "queueDelaySeconds": round(proposal.delay, 6),
            "latencySeconds": round(proposal.latency, 6),
        },
    }
