"""Which objects are ours to change: by their label and by whom the garbage collector holds them for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MANAGER_LABEL, MANAGER = "app.kubernetes.io/managed-by", "argosy"


@dataclass(frozen=True, slots=True)
class Owner:
    """An object's controller, as its owner references name it."""

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
    """Return whether it says that Argosy made it."""
    return (metadata.get("labels") or {}).get(MANAGER_LABEL) == MANAGER


def why_not_ours(managed: bool, owner: Owner | None, wanted: Owner | None) -> str:
    """Return why an object with this controller is not ours, in words; empty if it is.

    Ours is what belongs to the resource that it is wanted for, whatever became of its labels, and what says that we
    made it and belongs to nobody: someone took its owner away.
    """
    if owner is not None and wanted is not None and owner.uid == wanted.uid:
        return ""
    if owner is not None:
        return f"belongs to {owner.kind} {owner.name}"
    return "" if managed else f"is not Argosy's (it has no label {MANAGER_LABEL}={MANAGER})"
