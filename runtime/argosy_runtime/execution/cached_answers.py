"""The response cache as one version uses it: a request that was answered before does not reach the version."""

import os
from collections.abc import Callable, Sequence

from argosy_runtime.execution.clock import Clock
from argosy_runtime.execution.delegating import NOT_YET
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, ResponseTemplate, Submission
from argosy_runtime.scheduling.ordering import ResponseOrder
from argosy_runtime.scheduling.response_cache.cache import CachedResponse, ResponseCache
from argosy_runtime.scheduling.response_cache.keys import RequestKeys
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.tensors import Data

_SECRET_BYTES = 32
# So many templates of responses without one are remembered.
_TEMPLATES = 1024

Run = Callable[[Deliver], Submission]
"""Starts a request at the version itself."""


class CachedAnswers:
    """The part of the cache of one version with these `outputs`.

    Only successful answers whose tensors are in host memory are cached. Requests that are equal and come at the same
    time all run; the answer to the first is cached.
    """

    def __init__(
        self,
        cache: ResponseCache,
        name: str,
        version: int,
        outputs: Sequence[str],
        statistics: ModelStatistics,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._name = name
        self._version = str(version)
        self._statistics = statistics
        self._clock = clock
        self._outputs = tuple(outputs)
        self.forget()
        self._templates = FifoCache[tuple[object, ...], ResponseTemplate](_TEMPLATES)

    def forget(self) -> None:
        """Use none of the present answers any more, because the model answers otherwise now."""
        self._keys = RequestKeys(os.urandom(_SECRET_BYTES), self._outputs)

    def submit(self, request: InferRequest, deliver: Deliver, order: ResponseOrder | None, run: Run) -> Submission:
        """Answer a request from the cache, in its turn, or `run` it and keep its answer.

        Copies for a shadow always run.
        """
        arrived = self._clock.now()
        key = None if request.is_shadow else self._keys.key(request)
        if key is None:
            return run(deliver)
        looked_up = self._clock.now()
        entry = self._cache.lookup(key)
        lookup_ns = self._clock.now() - looked_up
        self._cache.lookup_ns += lookup_ns
        if entry is None:
            return run(_Miss(self, key, deliver, lookup_ns).receive)
        response = entry.response()
        names = request.requested_outputs
        if names:
            response.keep(names)
        response.model_name, response.model_version, response.id = self._name, self._version, request.id
        now = self._clock.now()
        self._statistics.cache_hit(now - arrived, looked_up - arrived, now - looked_up, now)
        trace = request.trace
        if trace is not None:
            trace.begin(self._name, self._version, request, arrived)
            trace.responded(response)
        (deliver if order is None else order.expect(deliver))(response)
        if trace is not None:
            trace.answered(now, running=False)
        return NOT_YET

    def keep(self, key: bytes, response: InferResponse, lookup_ns: int) -> None:
        """Keep a response to a request that the cache could not answer, and count the miss.

        As in Triton, the model's statistics have no miss where an equal request was first; the cache's own lookups do.
        """
        begun = self._clock.now()
        if key in self._cache:
            return
        entry = self._entry(response)
        if entry is not None:
            self._cache.insert(key, entry)
        insertion_ns = self._clock.now() - begun
        self._cache.insertion_ns += insertion_ns
        self._statistics.cache_miss(lookup_ns + insertion_ns)

    def _entry(self, response: InferResponse) -> CachedResponse | None:
        """Return a response as the cache has it: a copy. None where it is larger than the cache, or on a device."""
        if response.template is not None and response.raw is not None:
            return self._copied(response.template, response.raw)
        outputs = response.outputs
        if any(tensor.device is not None and tensor.raw is None for tensor in outputs):
            return None
        specs = [tensor.spec() for tensor in outputs]
        template_key = (*[spec.key for spec in specs], *sorted(map(repr, response.parameters.items())))
        template = self._templates.get(template_key)
        if template is None:
            template = ResponseTemplate(specs, response.parameters)
            self._templates.put(template_key, template)
        return self._copied(template, [tensor.data for tensor in outputs])

    def _copied(self, template: ResponseTemplate, raw: Sequence[Data]) -> CachedResponse | None:
        if not self._cache.fits(raw):
            return None
        return CachedResponse(template, [bytes(data) for data in raw])


class _Miss:
    """The answer to a request that was not in the cache, on its way."""

    __slots__ = ("_answers", "_deliver", "_key", "_lookup_ns")

    def __init__(self, answers: CachedAnswers, key: bytes, deliver: Deliver, lookup_ns: int) -> None:
        self._answers = answers
        self._key = key
        self._deliver = deliver
        self._lookup_ns = lookup_ns

    def receive(self, response: InferResponse) -> None:
        if response.final and response.error is None:
            self._answers.keep(self._key, response, self._lookup_ns)
        self._deliver(response)
