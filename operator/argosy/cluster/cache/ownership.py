"""Which objects Argosy may change: by their managed-by label and their controller. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MANAGER_LABEL, MANAGER = "app.kubernetes.io/managed-by", "argosy"


@dataclass(frozen=True, slots=True)
class Owner:
    """An object's controller, from its owner references."""

    kind: str
    name: str
    uid: str


def owner_of(metadata: Mapping[str, Any]) -> Owner | None:
    """Return the controller of an object with this metadata."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            return Owner(reference["kind"], reference["name"], reference["uid"])
    return None


def is_managed(metadata: Mapping[str, Any]) -> bool:
    """Return whether an object with this metadata has Argosy's managed-by label."""
    return (metadata.get("labels") or {}).get(MANAGER_LABEL) == MANAGER


def why_not_ours(managed: bool, owner: Owner | None, desired: Owner | None) -> str:
    """Return why an object with this controller is not Argosy's, as a message; empty if it is.

    It is if its controller is the desired one, whatever its labels, or if it has no controller, which a user removed,
    and Argosy's label.
    """
    if owner is not None and desired is not None and owner.uid == desired.uid:
        return ""
    if owner is not None:
        return f"belongs to {owner.kind} {owner.name}"
    return "" if managed else f"is not Argosy's (it has no label {MANAGER_LABEL}={MANAGER})"
