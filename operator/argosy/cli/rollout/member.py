"""A model or an ensemble as its document has it, which may be of another release: only what a rollout needs is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy.api.model.rollout.rollout import PROVING_FIELDS
from argosy.api.rolloutstatus import RolloutStatus


@dataclass(frozen=True, slots=True)
class Member:
    """A model or an ensemble. `conditions` are by type; `rollout` is None where nothing is proven.

    `loaded`: the versions that servers have; None where the status does not list any.
    """

    kind: str
    name: str
    namespace: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0
    observed_generation: int = 0
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rollout: RolloutStatus | None = None
    loaded: frozenset[int] | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Member":
        """Return the member of a body."""
        metadata, status = body["metadata"], body.get("status") or {}
        rollout = status.get("rollout")
        return cls(
            kind=body["kind"],
            name=metadata["name"],
            namespace=metadata.get("namespace", "default"),
            spec=body.get("spec") or {},
            annotations=metadata.get("annotations") or {},
            generation=metadata.get("generation", 0),
            observed_generation=status.get("observedGeneration", 0),
            conditions={condition["type"]: condition for condition in status.get("conditions") or ()},
            rollout=RolloutStatus.model_validate(rollout, by_alias=True, by_name=False) if rollout else None,
            loaded=_loaded(status.get("versions") or ()),
        )

    @property
    def described(self) -> str:
        """Its kind and name, as in messages."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_observed(self) -> bool:
        """Whether the status is about the present spec."""
        return self.observed_generation >= self.generation

    @property
    def proves(self) -> bool:
        """Whether its spec has steps or mirroring, by which a candidate is proven."""
        rollout = self.spec.get("rollout") or {}
        return any(rollout.get(name) for name in PROVING_FIELDS)

    def holds(self, condition: str) -> bool:
        """Return whether a condition is True."""
        return self.conditions.get(condition, {}).get("status") == "True"

    def message(self, condition: str) -> str:
        """Return the message of a condition, or its reason."""
        body = self.conditions.get(condition, {})
        return str(body.get("message") or body.get("reason") or "")


def _loaded(versions: Sequence[Mapping[str, Any]]) -> frozenset[int] | None:
    if not versions:
        return None
    return frozenset(one["version"] for one in versions if one.get("availableReplicas"))
