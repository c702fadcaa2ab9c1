"""A number of events and their total duration, as the statistics extension reports them."""

from tritonclient.grpc import service_pb2 as pb


class Duration:
    """A number of events, and their total duration."""

    __slots__ = ("count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, ns: int, count: int = 1) -> None:
        """Count one event, or `count` events of `ns` together."""
        self.count += count
        self.ns += ns

    def message(self) -> pb.StatisticDuration:
        """Return the protocol's message."""
        return pb.StatisticDuration(count=self.count, ns=self.ns)
