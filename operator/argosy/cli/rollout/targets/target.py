"""What the commands ask of a cluster or of an `argosy up`."""

from collections.abc import AsyncGenerator
from typing import Protocol

from argosy.cli.rollout.member import Member
from argosy.cli.rollout.requests import Request


class TargetError(Exception):
    """A resource cannot be read or changed; the message says why, and what to do."""


class Target(Protocol):
    """A cluster, or an `argosy up`. Its methods raise TargetError."""

    async def member(self, name: str) -> Member:
        """Return the model or ensemble `name`, or `kind/name` where both have the name."""

    def changes(self, member: Member) -> AsyncGenerator[Member]:
        """Yield the member as it is now, and after each change."""

    async def request(self, member: Member, request: Request) -> str:
        """Set or remove an annotation. Return what the user should know besides; empty if nothing."""


KINDS = {
    "model": "InferenceModel",
    "inferencemodel": "InferenceModel",
    "inferencemodels": "InferenceModel",
    "models": "InferenceModel",
    "amodel": "InferenceModel",
    "ensemble": "Ensemble",
    "ensembles": "Ensemble",
    "ens": "Ensemble",
}
"""The kinds by the names that a command takes."""
MEMBERS = ("InferenceModel", "Ensemble")


def named(text: str) -> tuple[tuple[str, ...], str]:
    """Return the kinds and the name that `name` or `kind/name` may mean. Raises TargetError for another kind."""
    kind, slash, name = text.rpartition("/")
    if not slash:
        return MEMBERS, name
    if kind.lower() not in KINDS:
        raise TargetError(f"{kind!r} has no rollouts: write model/{name} or ensemble/{name}")
    return (KINDS[kind.lower()],), name


def only(members: list[Member], text: str, where: str) -> Member:
    """Return the one member. Raises TargetError where there is none, or both a model and an ensemble."""
    if not members:
        raise TargetError(f"there is no model or ensemble {text!r} {where}")
    if len(members) > 1:
        raise TargetError(f"{text!r} is a model and an ensemble {where}: write model/{text} or ensemble/{text}")
    return members[0]
