"""The HTTP endpoints about the server and its models: health, metadata, statistics, repository."""

import base64
import binascii
from typing import Any, cast

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import internal, invalid, unsupported
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.modelconfig import to_json
from argosy_runtime.modelconfig.parameters.traffic import PARAMETER as TRAFFIC
from argosy_runtime.protocol.http.request import MOST_LENGTH, too_long
from argosy_runtime.protocol.json import messages as json_messages
from argosy_runtime.protocol.json.text import dumps, loads, typed, unsigned
from argosy_runtime.protocol.trace_settings import changes_of_json
from argosy_runtime.telemetry.log_settings import KINDS, Setting

from .wire.reply import Reply, empty_reply, json_reply, message_reply
from .wire.request_context import RequestContext


class Management:
    """Handlers of the requests that run no model. `limit`: the longest body, in bytes."""

    def __init__(self, plane: DataPlane, limit: int) -> None:
        self._plane = plane
        self._limit = limit
        self._index: tuple[pb.RepositoryIndexResponse, bytes] | None = None

    async def live(self, context: RequestContext) -> Reply:
        """Return 200 or 400 without a body."""
        return empty_reply(200 if self._plane.live() else 400)

    async def ready(self, context: RequestContext) -> Reply:
        """Return 200 or 400 without a body."""
        if (check := self._plane.readiness_check()) is not None:
            await check
        return empty_reply(200 if self._plane.ready() else 400)

    async def model_ready(self, context: RequestContext, model: str, version: str = "") -> Reply:
        """Return 200 without a body, or 400 with the reason."""
        if (check := self._plane.readiness_check(model, version)) is not None:
            await check
        if self._plane.model_ready(model, version):
            return empty_reply(200)
        return message_reply(400, "Model version not ready")

    async def server_metadata(self, context: RequestContext) -> Reply:
        """Return name, version and extensions."""
        return json_reply(json_messages.message_json(self._plane.server_metadata()))

    async def model_metadata(self, context: RequestContext, model: str, version: str = "") -> Reply:
        """Return versions, platform and tensors."""
        await self._plane.demand(model, version)
        return json_reply(json_messages.message_json(self._plane.model_metadata(model, version)))

    async def model_config(self, context: RequestContext, model: str, version: str = "") -> Reply:
        """Return the complete configuration."""
        await self._plane.demand(model, version)
        return json_reply(dumps(to_json(self._plane.model_config(model, version))))

    async def statistics(self, context: RequestContext, model: str = "", version: str = "") -> Reply:
        """Return the counters of one model, or of all."""
        return json_reply(json_messages.statistics_json(self._plane.statistics(model, version)))

    async def index(self, context: RequestContext, repository: str = "") -> Reply:
        """Return the repository's models; a repository's name makes no difference, as in Triton."""
        document = self._document(context)
        ready = document.get("ready")
        if ready is not None and type(ready) is not bool:
            raise invalid("Invalid value for 'ready': expected a boolean")
        index = await self._plane.index(bool(ready))
        if self._index is None or self._index[0] is not index:
            # While nothing changes it is the same message, and with thousands of models its text is long.
            self._index = (index, json_messages.index_json(index))
        return json_reply(self._index[1])

    async def load(self, context: RequestContext, model: str) -> Reply:
        """Load a model, with the configuration and files of the body's parameters if there are any.

        With the parameter `version_traffic` nothing is loaded, and the model's requests are divided as declared now.
        """
        config: str | None = None
        files: dict[str, bytes] = {}
        parameters = _parameters(self._document(context))
        if parameters == {TRAFFIC: True}:
            await self._plane.divide(model)
            return empty_json_reply()
        for name, value in parameters.items():
            text = typed(value, str, "")
            if name == "config":
                config = text
            elif name.startswith("file:"):
                files[name] = _base64(name, text)
            else:
                raise internal("unexpected error on creating Triton parameter")
        await self._plane.load(model, config, files)
        return empty_json_reply()

    async def unload(self, context: RequestContext, model: str) -> Reply:
        """Unload a model, and the models that depend on it if requested."""
        parameters = _parameters(self._document(context))
        dependents = typed(parameters.get("unload_dependents", False), bool, "Unable to parse 'unload_dependents'")
        await self._plane.unload(model, dependents)
        return empty_json_reply()

    async def named_repository(self, context: RequestContext, repository: str, model: str) -> Reply:
        """Refuse to load or unload in a named repository, as Triton does."""
        raise unsupported("'repository_name' specification is not supported")

    async def trace(self, context: RequestContext, model: str = "") -> Reply:
        """Return the trace settings of a model, or of all; a POST changes them first."""
        settings = self._plane.trace_settings(model)
        if context.method == "POST":
            self._plane.change_trace_settings(model, changes_of_json(self._document(context)))
            settings = self._plane.trace_settings(model)
        return json_reply(dumps(settings))

    async def logging(self, context: RequestContext) -> Reply:
        """Return the log settings; a POST changes them first."""
        if context.method == "POST":
            changes = {name: value for name, value in self._document(context).items() if value is not None}
            for name in KINDS.keys() & changes.keys():
                changes[name] = _setting(changes[name], KINDS[name])
            self._plane.change_log_settings(changes)
        return json_reply(dumps(self._plane.log_settings()))

    def _document(self, context: RequestContext) -> dict[str, Any]:
        return body_document(context, self._limit)


def body_document(context: RequestContext, limit: int) -> dict[str, Any]:
    """Return the JSON object of a body of at most `limit` bytes; an empty one for an empty body or other JSON."""
    body = context.body(limit)
    if len(body) > limit:
        raise invalid(too_long(len(body), limit))
    document = loads(body) if body else {}
    return document if type(document) is dict else {}


def empty_json_reply() -> Reply:
    """Return 200 without a body but with the type of JSON, as Triton answers load and unload."""
    return Reply(200)


def _parameters(document: dict[str, Any]) -> dict[str, Any]:
    parameters = document.get("parameters")
    if parameters is None:
        return {}
    if type(parameters) is not dict:
        raise internal("attempt to get members for non-object")
    return parameters


def _setting(value: Any, kind: type) -> Setting:
    return unsigned(value, "") if kind is int else cast(Setting, typed(value, kind, ""))


def require_readable(name: str, encoded: str) -> None:
    """Raise INVALID_ARG for base64 that is longer than Triton decodes."""
    if len(encoded) > MOST_LENGTH:
        raise invalid(f"'{name}' exceeds the maximum allowed data size limit INT_MAX")


def _base64(name: str, text: str) -> bytes:
    require_readable(name, text)
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"'{name}' is not base64: {error}") from None
