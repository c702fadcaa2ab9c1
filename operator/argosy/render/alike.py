"""A resource as the key of a cache of what is rendered from it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel

Member = TypeVar("Member", InferenceModel, Ensemble)


@dataclass(frozen=True, slots=True, eq=False)
class Alike(Generic[Member]):
    """Two are the same that have the same name and one spec, which is frozen: an unchanged resource keeps its own."""

    resource: Member

    def __hash__(self) -> int:
        return hash((self.resource.name, id(self.resource.spec)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Alike)
            and self.resource.spec is other.resource.spec
            and self.resource.name == other.resource.name
        )
