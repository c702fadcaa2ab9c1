"""SageMaker's port: /ping and /invocations for one model, /models for those that SageMaker loads."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http.app import HttpOptions, refusal
from argosy_runtime.frontends.http.wire.application import Application, ByCoroutine, Fixed, Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.reply import empty_reply, error_reply
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api

from .heads import Later, v2_head
from .multi_model import MultiModel, invoke_reply

PORT_FLAG: Final = "--sagemaker-port"
BINARY_TYPE: Final = "application/vnd.sagemaker-triton.binary+json;json-header-size="
KINDS: Final = ("infer", "generate", "generate_stream")
ARCHIVES: Final = "/opt/ml/models"
_MODELS: Final = re.compile(r"/models/?([^/]+)?(/invoke)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerOptions:
    """`model`: what /invocations runs, by the endpoint `kind` of the V2 protocol; `ping`: ready or live; `archives`:
    where SageMaker unpacks the models that it loads.
    """

    port: int
    model: str
    kind: str = "infer"
    ping: str = "ready"
    archives: str = ARCHIVES


class SageMakerApp:
    """The application of the port, over that of the V2 protocol."""

    def __init__(self, v2: Application, plane: DataPlane, http: HttpOptions, options: SageMakerOptions) -> None:
        self._v2 = v2
        self._options = options
        self._restricted = http.restricted
        self._models = MultiModel(plane, options.archives, http.max_input_size)

    def handler(self, head: Head) -> Handler:
        if head.path == "/ping":
            return self._translated(head, f"/v2/health/{self._options.ping}")
        if head.path == "/invocations":
            return self._translated(head, f"/v2/models/{self._options.model}/{self._options.kind}")
        match = _MODELS.fullmatch(head.path)
        if match is None:
            return Fixed(empty_reply(400))
        key, invokes = unquote(match[1] or ""), match[2] is not None
        if head.method == "POST" and invokes:
            head.reworded = invoke_reply
            return refusal(self._restricted, Api.INFERENCE, head) or Later(head, lambda head: self._invoke(head, key))
        return refusal(self._restricted, Api.MODEL_REPOSITORY, head) or self._controlling(head.method, key)

    def _controlling(self, method: str, key: str) -> Handler:
        if method == "GET" and not key:
            return ByCoroutine(self._models.list)
        if method == "GET":
            return ByCoroutine(self._models.get, (key,))
        if method == "POST":
            return ByCoroutine(self._models.load)
        if method == "DELETE":
            return ByCoroutine(self._models.unload, (key,))
        return Fixed(empty_reply(400))

    async def _invoke(self, head: Head, key: str) -> Handler:
        name = self._models.invoked(head.headers, key)
        if name is None:
            return Fixed(empty_reply(404))
        return self._translated(head, f"/v2/models/{quote(name, safe='')}/infer")

    def _translated(self, head: Head, path: str) -> Handler:
        try:
            return self._v2.handler(v2_head(head, head.method, path, BINARY_TYPE))
        except ServingError as error:
            return Fixed(error_reply(error))
