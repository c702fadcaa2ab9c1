"""What is asked of an API server: one method for each verb, on plain objects.

Every method raises ApiError's subclasses. Nothing is repeated here: who asks knows whether that makes sense.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from argosy.render.workloads import Cluster

from . import crds, discovery, transport
from .credentials import Credentials, CredentialsError, find
from .errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnreachableError,
)
from .transport import Call, OnRequest, Transport

__all__ = [
    "Connection",
    "ApiError",
    "ConflictError",
    "CredentialsError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "NotFoundError",
    "TooLargeError",
    "UnreachableError",
]

Body = Mapping[str, Any]
PAGE = 250
"""Objects in one answer to a list: what is held at once while thousands are read."""
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
NOTHING: Mapping[str, str] = {}


class Connection:
    """An open connection; `open` makes one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        on_request: OnRequest | None = None,
    ) -> "AsyncIterator[Connection]":
        """Connect by a kubeconfig, or as the Pod's service account; see `credentials.find`.

        `on_request` is told of each request: verb, resource, HTTP status (0: no answer), seconds. Raises
        CredentialsError; whether the API server answers shows with the first request.
        """
        async with Transport(await find(kubeconfig, context), on_request) as opened:
            yield cls(opened)

    @property
    def credentials(self) -> Credentials:
        """Whom it talks to, and as whom: for other clients in the same process."""
        return self._transport.credentials

    async def get(self, path: str, *, metadata_only: bool = False, urgent: bool = False) -> dict[str, Any]:
        """One object; `metadata_only` leaves out all but its metadata. An `urgent` one does not wait behind others."""
        accept = METADATA_ONLY if metadata_only else transport.JSON
        return await self._transport.send(Call("get", path, accept=accept, urgent=urgent))

    async def pages(
        self, path: str, params: Mapping[str, str] = NOTHING, *, metadata_only: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """The lists that hold a collection, one after another. GoneError where reading took too long."""
        more, accept = "", METADATA_LIST if metadata_only else transport.JSON
        while True:
            asked = {**params, "limit": str(PAGE)} | ({"continue": more} if more else {})
            page = await self._transport.send(Call("list", path, asked, accept=accept, timeout_s=transport.LIST_S))
            page["items"] = page.get("items") or []  # of metadata alone an empty list is null
            yield page
            more = page["metadata"].get("continue", "")
            if not more:
                return

    def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """The events of a collection, from `resourceVersion` on, until the API server ends the answer."""
        accept = METADATA_ONLY if metadata_only else transport.JSON
        return self._transport.stream(Call("watch", path, {**params, "watch": "1"}, accept=accept))

    async def create(self, path: str, body: Body, *, manager: str) -> dict[str, Any]:
        """A new object, as it then stands. ConflictError where it exists."""
        return await self._transport.send(Call("create", path, {"fieldManager": manager}, body))

    async def update(
        self, path: str, body: Body, *, manager: str, timeout_s: float = transport.CALL_S, urgent: bool = False
    ) -> dict[str, Any]:
        """Write a whole object, which names the version that it replaces. ConflictError where that is not the newest.

        An `urgent` one does not wait until a thousand others are answered.
        """
        params = {"fieldManager": manager}
        return await self._transport.send(Call("update", path, params, body, timeout_s=timeout_s, urgent=urgent))

    async def apply(self, path: str, body: Body, *, manager: str) -> dict[str, Any]:
        """Server-side apply by force: the fields in `body` become the manager's, those it no longer names go.

        With `metadata.uid`, ConflictError or InvalidError unless just that object exists.
        """
        params = {"fieldManager": manager, "force": "true"}
        return await self._transport.send(Call("patch", path, params, body, transport.APPLY_PATCH))

    async def merge(self, path: str, body: Body, *, manager: str) -> dict[str, Any]:
        """Change an object by a JSON merge patch."""
        return await self._transport.send(Call("patch", path, {"fieldManager": manager}, body, transport.MERGE_PATCH))

    async def merge_lists(self, path: str, body: Body, *, manager: str) -> dict[str, Any]:
        """Change an object by a strategic merge patch, which knows lists' keys."""
        params = {"fieldManager": manager}
        return await self._transport.send(Call("patch", path, params, body, transport.STRATEGIC_PATCH))

    async def delete(self, path: str, uid: str) -> dict[str, Any]:
        """Delete just the object of this uid; what it owns goes after it. ConflictError where it is another one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        return await self._transport.send(Call("delete", path, {}, options))

    async def discovery(self) -> Cluster:
        """What the API server offers of what there are several versions of."""
        return await discovery.cluster(self.get)

    async def crd_problems(self) -> list[str]:
        """What is wrong with Argosy's CRDs there: missing, or without fields of this release. With the way out."""
        return await crds.problems(self.get)
