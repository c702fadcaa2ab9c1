"""`response_stats` of the statistics extension: the responses of a decoupled model by their index in the answer."""

from collections.abc import Mapping
from typing import Final

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferResponse

from .durations import Duration

MOST_INDEXES: Final = 1000
"""Later responses count at the last index: an answer may have millions, and the statistics must not."""


class _Counters:
    """The responses at one index."""

    __slots__ = ("cancel", "compute_infer", "compute_output", "empty", "fail", "success")

    def __init__(self) -> None:
        self.compute_infer = Duration()
        self.compute_output = Duration()
        self.success = Duration()
        self.fail = Duration()
        self.empty = Duration()
        self.cancel = Duration()

    def message(self) -> pb.InferResponseStatistics:
        return pb.InferResponseStatistics(
            compute_infer=self.compute_infer.message(),
            compute_output=self.compute_output.message(),
            success=self.success.message(),
            fail=self.fail.message(),
            empty_response=self.empty.message(),
            cancel=self.cancel.message(),
        )


class ResponseStatistics:
    """The counters of one version's responses."""

    def __init__(self) -> None:
        self._counters: list[_Counters] = []

    def add(self, index: int, response: InferResponse, ns: int) -> None:
        """Count a response, the first at index 0, that came `ns` after the one before or after its execution began."""
        index = min(index, MOST_INDEXES - 1)
        while len(self._counters) <= index:
            self._counters.append(_Counters())
        counters = self._counters[index]
        if response.error is not None and response.error.kind is ErrorKind.CANCELLED:
            counters.cancel.add(ns)
            return
        counters.compute_infer.add(ns)
        if response.error is not None:
            counters.fail.add(ns)
        elif response.is_empty:
            counters.empty.add(ns)
        else:
            # A model's outputs are taken as they are, which takes no time of its own.
            counters.compute_output.add(0)
            counters.success.add(ns)

    def messages(self) -> Mapping[str, pb.InferResponseStatistics]:
        """Return the protocol's messages by index."""
        return {str(index): counters.message() for index, counters in enumerate(self._counters)}
