"""What a model's shape says of how it is split, in words for its condition Valid: it serves all the same."""

from argosy.api import InferenceModel
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.rules import advice
from argosy.status.progress import PoolProgress


def topology_advice(model: InferenceModel, progress: PoolProgress) -> str:
    """Return each piece of advice under its rule's name; empty where there is none, or the shape is not known."""
    shape = progress.members.shapes.get(model.name)
    if shape is None:
        return ""
    findings = advice(Deployment.of(model, shape, progress.state.machine))
    return "; ".join(f"{finding.rule}: {finding.message}" for finding in findings)


def unused_traffic(model: InferenceModel, progress: PoolProgress) -> str:
    """Return why `spec.traffic` changes nothing; empty where it does, or is not set."""
    if model.spec.traffic is None or model.name in progress.members.shapes:
        return ""
    return "spec.traffic: nothing tells the model's shape, which a config.json on this machine or a built engine would"
