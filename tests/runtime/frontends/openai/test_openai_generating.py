"""Generations whose requests cannot all be submitted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from argosy_runtime.frontends.http.openai.generating import Generation
from argosy_runtime.messages import Deliver, InferRequest
from argosy_runtime.protocol.openai.errors import ParameterNames
from argosy_runtime.protocol.openai.requests.embedding import EmbeddingRequest


class _Submission:
    """A submission that records its cancellation."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class _Plane:
    """A data plane that takes one request."""

    def __init__(self) -> None:
        self.taken: list[_Submission] = []

    def submit(self, request: InferRequest, deliver: Deliver) -> _Submission:
        if self.taken:
            raise KeyError("a bug")
        self.taken.append(_Submission())
        return self.taken[-1]

    def pin(self, requests: Sequence[InferRequest]) -> None:
        """Do nothing: its model has one version."""


def test_a_bug_while_submitting_cancels_the_requests_before_it() -> None:
    plane: Any = _Plane()
    context: Any = SimpleNamespace(head=None, received=0)
    readers: list[Any] = [None, None]
    generation: Generation[None] = Generation(plane, context, "id", readers, lambda: ParameterNames("prompt"), None)
    with pytest.raises(KeyError, match="a bug"):
        generation.start([InferRequest("llm", {}), InferRequest("llm", {})], EmbeddingRequest(model="llm", input="a"))
    assert [submission.cancelled for submission in plane.taken] == [True]
