"""The head that all objects have: type, name, labels, owner."""

from collections.abc import Mapping
from typing import Any

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.meta import API_VERSION
from argosy.api.servingpool import ServingPool

Owner = ServingPool | InferenceModel | Ensemble


def owned(
    api_version: str,
    kind: str,
    name: str,
    owner: Owner,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An object without content, in its owner's namespace, that goes when the owner goes."""
    metadata: dict[str, Any] = {"name": name, "namespace": owner.namespace, "labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    metadata["ownerReferences"] = [_reference(owner)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _reference(owner: Owner) -> dict[str, Any]:
    """The owner, as the garbage collector finds it. Nothing of ours holds up its deletion."""
    kind = type(owner).__name__
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
    }
