"""Models that have been used for a while, as their metrics have them."""

import random
from collections.abc import Sequence

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.telemetry.argosy_families import argosy_families
from argosy_runtime.telemetry.exposition import Family, Labels
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.triton_families import triton_families

_REQUESTS = 200
_MS = 1_000_000


class Models:
    """So many models of one server; the `active` share (0 to 1) of them answers requests."""

    def __init__(self, count: int, active: float, seed: int = 6) -> None:
        self._random = random.Random(seed)
        service = InService(running=0, instances=1, decoupled=False, max_batch_size=8, max_queue_delay_us=500)
        self.series = [
            ModelSeries(Labels({"model": f"model-{number:04d}", "version": "1"}), ModelStatistics(), 0, service)
            for number in range(count)
        ]
        self._active = round(active * count)

    def answer(self, requests: int = _REQUESTS) -> None:
        """Let each active model answer so many more requests, of all durations there are."""
        for series in self.series[: self._active]:
            statistics = series.statistics
            for _ in range(requests):
                statistics.single.add(round(10 ** self._random.uniform(5, 10)))
                statistics.queueing.add(round(10 ** self._random.uniform(4, 9)))
            statistics.succeeded(requests, requests * 8 * _MS, requests * _MS, 2 * requests)
            for rows in (1, 4):
                statistics.ran(requests // 2, rows, ExecutionTimes(1000, 2 * _MS, 1000))


def families_of(models: Sequence[ModelSeries]) -> list[Family]:
    """Return the families as the server has them."""
    some = list(models)
    return [*triton_families(some), *argosy_families(some, 1)]
