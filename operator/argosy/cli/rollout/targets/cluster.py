"""Rollouts in a cluster, with the rights of the user's kubeconfig."""

from collections.abc import AsyncGenerator
from typing import Any

from argosy.cli.rollout.member import Member
from argosy.cli.rollout.requests import Request
from argosy.cli.rollout.targets.target import TargetError, named, only
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, GoneError, NotFoundError, UnreachableError
from argosy.cluster.client.kinds import RESOURCES

MANAGER = "argosy-rollout"
"""The field manager of annotations that commands set."""


class ClusterTarget:
    """One namespace of a cluster. Implements `Target`."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection, self._namespace = connection, namespace

    async def member(self, name: str) -> Member:
        """Return the model or ensemble of the namespace."""
        kinds, bare = named(name)
        bodies = [body for kind in kinds if (body := await self._body(kind, bare)) is not None]
        return only(
            [Member.of(body) for body in bodies],
            name,
            f"in the namespace {self._namespace} (kubectl get inferencemodels,ensembles)",
        )

    async def changes(self, member: Member) -> AsyncGenerator[Member]:
        """Yield the member as a watch reports it; a watch that ends or breaks off is begun again."""
        while True:
            body = await self._body(member.kind, member.name)
            if body is None:
                raise TargetError(f"{member.described} was deleted")
            yield Member.of(body)
            async for changed in self._watched(member, body["metadata"]["resourceVersion"]):
                yield changed

    async def request(self, member: Member, request: Request) -> str:
        """Annotate the resource by a merge patch, which leaves all else as it is."""
        body = {"metadata": {"annotations": {request.annotation: request.value}}}
        key = (self._namespace, member.name)
        try:
            await self._connection.merge(RESOURCES[member.kind], key, body, manager=MANAGER)
        except ApiError as error:
            raise TargetError(f"{member.described} cannot be annotated: {error}") from error
        return ""

    async def _watched(self, member: Member, version: str) -> AsyncGenerator[Member]:
        """Yield changes until the watch ends. Raises TargetError where the member is deleted."""
        selector = {"fieldSelector": f"metadata.name={member.name}", "resourceVersion": version}
        try:
            async for event in self._connection.watch(RESOURCES[member.kind], self._namespace, selector):
                if event["type"] == "DELETED":
                    raise TargetError(f"{member.described} was deleted")
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield Member.of(event["object"])
        except (GoneError, UnreachableError):
            return
        except ApiError as error:
            raise TargetError(f"{member.described} cannot be watched: {error}") from error

    async def _body(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return await self._connection.get(RESOURCES[kind], (self._namespace, name))
        except NotFoundError:
            return None
        except ApiError as error:
            raise TargetError(f"{kind} {self._namespace}/{name} cannot be read: {error}") from error
