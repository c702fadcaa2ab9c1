"""SageMaker's port: /ping and /invocations, for one model."""

from dataclasses import dataclass
from typing import Final

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.http.wire.application import Application, Fixed, Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.reply import empty_reply, error_reply, message_reply

from .heads import v2_head

PORT_FLAG: Final = "--sagemaker-port"
BINARY_TYPE: Final = "application/vnd.sagemaker-triton.binary+json;json-header-size="
KINDS: Final = ("infer", "generate", "generate_stream")
_NO_MODELS: Final = "this server serves one model to SageMaker: multi-model endpoints are not supported"


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerOptions:
    """`model`: what /invocations runs, by the endpoint `kind` of the V2 protocol; `ping`: ready or live."""

    port: int
    model: str
    kind: str = "infer"
    ping: str = "ready"


class SageMakerApp:
    """The application of the port, over that of the V2 protocol."""

    def __init__(self, v2: Application, options: SageMakerOptions) -> None:
        self._v2 = v2
        self._options = options

    def handler(self, head: Head) -> Handler:
        if head.path == "/ping":
            return self._translated(head, f"/v2/health/{self._options.ping}")
        if head.path == "/invocations":
            return self._translated(head, f"/v2/models/{self._options.model}/{self._options.kind}")
        if head.path == "/models" or head.path.startswith("/models/"):
            return Fixed(message_reply(501, _NO_MODELS))
        return Fixed(empty_reply(400))

    def _translated(self, head: Head, path: str) -> Handler:
        try:
            return self._v2.handler(v2_head(head, head.method, path, BINARY_TYPE))
        except ServingError as error:
            return Fixed(error_reply(error))
