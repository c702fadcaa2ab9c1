"""Who answers the inference requests of a head: by what is known of others like them, or in the ordinary way."""

from argosy_runtime.frontends.port import DataPlane

from .infer import HEADER_LENGTH, Forwarding, Infer
from .infer_plan import InferPlans, PlannedInfer, may_be_known
from .wire.application import Handler
from .wire.heads import Head


class Inference:
    """Makes the handlers of the infer endpoint. `limit` is the most bytes of JSON, or of a decompressed body."""

    def __init__(self, plane: DataPlane, limit: int, forward_pattern: str) -> None:
        self._plane = plane
        self._limit = limit
        self._forwarding = Forwarding(forward_pattern)
        self._plans = InferPlans()

    def handler(self, head: Head, model: str, version: str = "") -> Handler:
        """Who answers requests with this head to a model."""
        ordinary = Infer(self._plane, self._limit, head, self._forwarding.of(head), model, version)
        said = head.headers.get(HEADER_LENGTH, b"")
        json_length = int(said) if said.isdigit() else 0
        if not ordinary.may_be_planned or head.chunked or not may_be_known(min(json_length, self._limit)):
            return ordinary
        if json_length > min(head.length, self._limit):
            return ordinary
        route = repr((model, version)).encode()
        return PlannedInfer(self._plane, self._plans, ordinary, route, json_length)
