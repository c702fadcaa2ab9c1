"""SageMaker's multi-model endpoints: models that SageMaker loads from archives, and invokes by the hash of each."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.http.management import body_document
from argosy_runtime.frontends.http.wire.reply import Reply, empty_reply, json_reply, message_reply
from argosy_runtime.frontends.http.wire.request_context import RequestContext
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.protocol.json.text import dumps, typed

from . import archives

TARGET: Final = b"x-amzn-sagemaker-target-model"
_OUT_OF_MEMORY: Final = (
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "Dst tensor is not initialized",
    "Src tensor is not initialized",
    "CNMEM_STATUS_OUT_OF_MEMORY",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Failed to allocate memory",
    "failed to allocate memory",
    "No space left on device",
)
_UNLOAD_SECONDS: Final = 350.0
_POLL_SECONDS: Final = 0.1
_UNCHANGED: Final = frozenset((403, 405, 415))


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model that SageMaker has loaded: its name in the server, and its repository."""

    name: str
    repository: Path


class MultiModel:
    """The models by hash. `root`: where SageMaker unpacks archives; `limit`: the longest body, in bytes."""

    def __init__(self, plane: DataPlane, root: str, limit: int) -> None:
        self._plane = plane
        self._root = root
        self._limit = limit
        self._models: dict[str, _Loaded] = {}
        self._loading = set[str]()
        self._unloading = asyncio.Lock()
        self._tasks = set[asyncio.Task[Reply]]()

    async def list(self, context: RequestContext) -> Reply:
        """Return the models that are ready."""
        ready = [key for key, model in sorted(self._models.items()) if self._plane.model_ready(model.name, "")]
        return json_reply(dumps({"models": [self._entry(key) for key in ready]}))

    async def get(self, context: RequestContext, key: str) -> Reply:
        """Return one model."""
        return json_reply(dumps(self._entry(key))) if key in self._models else empty_reply(404)

    async def load(self, context: RequestContext) -> Reply:
        """Register the archive of a model, and load it under the name that a header gives, or else its hash."""
        try:
            document = body_document(context, self._limit)
            key, url = (typed(document.get(name, ""), str, "") for name in ("model_name", "url"))
            name = _text(context.head.headers.get(TARGET)) or key
            return await self._owned(self._load(key, name, url))
        except ServingError as error:
            return _refusal(error)

    async def unload(self, context: RequestContext, key: str) -> Reply:
        """Unload a model, and the steps of an ensemble that nothing else needs."""
        return await self._owned(self._unload(key))

    def invoked(self, headers: dict[bytes, bytes], key: str) -> str | None:
        """Return the name of the model to run for a hash: the header's, or else its own; None where it is unknown."""
        model = self._models.get(key)
        return None if model is None else _text(headers.get(TARGET)) or model.name

    async def _load(self, key: str, name: str, url: str) -> Reply:
        archive = await asyncio.to_thread(archives.find, url, self._root)
        if key in self._models or key in self._loading:
            message = f"model repository '{archive.repository}' has already been registered"
            raise ServingError(ErrorKind.ALREADY_EXISTS, message)
        self._loading.add(key)
        try:
            await self._load_from(archive, name)
        finally:
            self._loading.discard(key)
        self._models[key] = _Loaded(name, archive.repository)
        return empty_reply(200)

    async def _load_from(self, archive: archives.Archive, name: str) -> None:
        await self._plane.register(archive.repository, archive.folder, name)
        loaded = False
        try:
            await self._plane.load(name, None, {})
            loaded = True
        finally:
            if not loaded:
                self._plane.unregister(archive.repository)

    async def _unload(self, key: str) -> Reply:
        async with self._unloading:
            model = self._models.get(key)
            if model is None:
                return empty_reply(404)
            try:
                await self._plane.unload(model.name, True)
                await self._gone(model.name)
                self._plane.unregister(model.repository)
            except ServingError as error:
                return _refusal(error)
            del self._models[key]
            return empty_reply(200)

    async def _gone(self, name: str) -> None:
        """Wait until a model's memory is free, at most as long as SageMaker waits."""
        for _ in range(round(_UNLOAD_SECONDS / _POLL_SECONDS)):
            index = await self._plane.index(False)
            if not any(row.name == name and row.state == "UNLOADING" for row in index.models):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _owned(self, work: Coroutine[Any, Any, Reply]) -> Reply:
        """Run work to its end also where the client goes: what is loaded must be in the list."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Reply]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Retrieved: the client may have gone.
            task.exception()

    def _entry(self, key: str) -> dict[str, str]:
        return {"modelName": key, "modelUrl": str(self._models[key].repository)}


def invoke_reply(reply: Reply) -> Reply:
    """Return the reply of an invocation with the status that SageMaker knows: 507 without memory, else 400.

    Without a body it stays: so is an unknown model refused.
    """
    if reply.status < 400 or reply.status in _UNCHANGED or not reply.chunks:
        return reply
    text = b"".join(bytes(chunk) for chunk in reply.chunks).decode(errors="replace")
    return Reply(_status(text), reply.chunks, reply.headers)


def _refusal(error: ServingError) -> Reply:
    status = 409 if error.kind is ErrorKind.ALREADY_EXISTS else _status(error.message)
    return message_reply(status, error.message)


def _status(message: str) -> int:
    return 507 if any(text in message for text in _OUT_OF_MEMORY) else 400


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("latin-1")
