"""The HTTP endpoints of the shared memory extensions: status, register, unregister."""

import base64
import binascii
from typing import Any

from argosy_runtime.errors import internal, invalid
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.protocol.json.text import dumps, missing, typed, unsigned
from argosy_runtime.shared_memory.checks import CUDA_HANDLE_SIZE
from argosy_runtime.shared_memory.regions import Region, RegionKind

from .management import body_document, empty_json_reply, require_readable
from .wire.reply import Reply, json_reply
from .wire.request_context import RequestContext


class SharedMemory:
    """Handlers of the regions' endpoints. `limit`: the longest body, in bytes."""

    def __init__(self, plane: DataPlane, limit: int) -> None:
        self._plane = plane
        self._limit = limit

    async def status(self, context: RequestContext, region: str = "", *, kind: RegionKind) -> Reply:
        """Return one region, or all of a kind."""
        return json_reply(dumps([_document(registered) for registered in self._plane.regions.status(kind, region)]))

    async def register_system(self, context: RequestContext, region: str = "") -> Reply:
        """Register memory by its key."""
        self._require_name(RegionKind.SYSTEM, region)
        document = body_document(context, self._limit)
        key = typed(_required(document, "key"), str, "")
        offset = unsigned(document.get("offset", 0), "")
        self._plane.regions.register_system(region, key, offset, unsigned(_required(document, "byte_size"), ""))
        return empty_json_reply()

    async def register_cuda(self, context: RequestContext, region: str = "") -> Reply:
        """Register memory of a GPU by CUDA's handle."""
        self._require_name(RegionKind.CUDA, region)
        document = body_document(context, self._limit)
        encoded = _member(_required(document, "raw_handle"), "b64")
        size, device = unsigned(_member(document, "byte_size"), ""), unsigned(_member(document, "device_id"), "")
        self._plane.regions.register_cuda(region, _handle(typed(encoded, str, "")), device, size)
        return empty_json_reply()

    async def unregister(self, context: RequestContext, region: str = "", *, kind: RegionKind) -> Reply:
        """Unregister one region, or all of a kind."""
        self._plane.regions.unregister(kind, region)
        return empty_json_reply()

    def _require_name(self, kind: RegionKind, region: str) -> None:
        self._plane.regions.require_allowed()
        if not region:
            raise invalid(f"'region name' is necessary to register {kind} shared memory region")


def _document(region: Region) -> dict[str, Any]:
    if region.kind is RegionKind.CUDA:
        return {"name": region.name, "device_id": region.device, "byte_size": region.size}
    return {"name": region.name, "key": region.key, "offset": region.offset, "byte_size": region.size}


def _required(document: dict[str, Any], name: str) -> Any:
    if name not in document:
        raise invalid(f"Shared memory register request has no '{name}' field")
    return document[name]


def _member(holder: Any, name: str) -> Any:
    if type(holder) is not dict or name not in holder:
        raise internal(missing(name))
    return holder[name]


def _handle(encoded: str) -> bytes:
    require_readable("raw_handle", encoded)
    try:
        handle = base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        handle = b""
    if len(handle) != CUDA_HANDLE_SIZE:
        raise invalid("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")
    return handle
