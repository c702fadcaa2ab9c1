"""What annotations of a resource ask of its rollout. Each value names a revision, so that a request acts once."""

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.api import Ensemble, Member, Resource
from argosy.api.values.times import parse_time
from argosy.rollout.requests import FURTHER

PROMOTE = "argosy.dev/promote"
RETRY = "argosy.dev/retry"
UNDO = "argosy.dev/undo"
PAUSE = "argosy.dev/pause"
ANNOTATIONS = (PROMOTE, RETRY, UNDO, PAUSE)
_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class RolloutRequests:
    """The annotations of one resource, as they are; `paused` is whether `argosy.dev/pause` is "true"."""

    promote: str = ""
    retry: str = ""
    undo: str = ""
    paused: bool = False

    @classmethod
    def of(cls, resource: Resource) -> "RolloutRequests":
        """Return what a resource's annotations ask for."""
        annotations = resource.metadata.annotations
        return cls(
            annotations.get(PROMOTE, ""),
            annotations.get(RETRY, ""),
            annotations.get(UNDO, ""),
            annotations.get(PAUSE, "").lower() == "true",
        )

    @property
    def undo_name(self) -> str:
        """The name of the revision to go back to that `argosy.dev/undo` has after an @; empty if it names none. A time
        is none: it tells one request from the next.
        """
        names = (name.strip() for name in self.undo.split(FURTHER)[1:])
        return next((name for name in names if name and parse_time(name) is None), "")


def command_argument(member: Member) -> str:
    """Return how the commands of `argosy rollout` name a member, where both kinds may have its name."""
    kind = "ensemble" if isinstance(member, Ensemble) else "model"
    namespace = f" --namespace {member.namespace}" if member.namespace != _DEFAULT_NAMESPACE else ""
    return f"{kind}/{member.name}{namespace}"


def requested(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that a rollout depends on."""
    return {name: annotations[name] for name in ANNOTATIONS if name in annotations}
