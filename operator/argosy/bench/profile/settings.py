"""The proposal as a patch of the model's manifest, and all that was measured as a document."""

from argosy.bench.profile.points import Memory, Sweep
from argosy.bench.profile.proposal import Proposal, knee
from argosy.planning.amounts import mebibytes


def gpu_memory(memory: Memory, instances: int) -> str | None:
    """Return the bytes of a GPU for one instance as a manifest has them; None where there are none."""
    if not memory.gpu:
        return None
    return mebibytes(-(-memory.gpu // instances))


def patch(name: str, namespace: str, proposal: Proposal) -> dict[str, object]:
    """Return the merge patch of an InferenceModel, to keep next to its manifest or to apply by kubectl."""
    point = proposal.point
    spec: dict[str, object] = {"instances": point.instances}
    if point.batch > 1:
        batching: dict[str, object] = {"maxQueueDelayMicroseconds": round(proposal.delay * 1e6)}
        if proposal.preferred:
            batching["preferredBatchSizes"] = [*proposal.preferred, point.batch]
        spec |= {"maxBatchSize": point.batch, "batching": batching}
    memory = gpu_memory(point.memory, point.instances)
    if memory is not None:
        spec["footprint"] = {"gpuMemory": memory}
    return {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": "InferenceModel",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def document(sweep: Sweep, proposal: Proposal | None) -> dict[str, object]:
    """Return points, failures, the knee of each number of instances, and the proposal, as plain values."""
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
            "maxBatchSize": proposal.point.batch,
            "preferredBatchSizes": list(proposal.preferred),
            "queueDelaySeconds": round(proposal.delay, 6),
            "latencySeconds": round(proposal.latency, 6),
        },
    }
