"""The operator's cost of reading the metrics of a pool's servers, up to their signals."""

import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.pool_signals import pool_signals
from argosy.autoscaling.metrics.windows import ServerWindow
from argosy.signals.exposition import samples
from argosy.signals.samples import SAMPLE_NAMES, Sample, exposed
from argosy.signals.targets import PoolTargets, ScrapeTarget
from argosy_runtime.telemetry.exposition import exposition

from .models import Models, families_of

_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class ReadingCost:
    """Milliseconds of CPU time for one MB of text: by Prometheus' own parser, as it is parsed here, and what follows
    from there to the signals of all members. `megabytes` of one reading.
    """

    megabytes: float
    their_parser_ms: float
    parsing_ms: float
    understanding_ms: float


def reading_cost(servers: int, models: int, rounds: int) -> ReadingCost:
    """Return the medians of rounds that alternate, of a pool of so many servers with the same models, all busy."""
    fleet = [Models(models, 1.0, seed) for seed in range(servers)]
    serves = {series.labels["model"]: series.labels["model"] for series in fleet[0].series}
    pool = PoolTargets(PoolKey("team/pool"), tuple(ScrapeTarget(f"s-{n}", serves=serves) for n in range(servers)))
    windows: dict[str, ServerWindow] = {}
    theirs, parsing, understanding, sizes = [], [], [], []
    for round_ in range(rounds + 2):
        texts = []
        for server in fleet:
            server.answer(20)
            texts.append(exposition(families_of(server.series)).decode())
        at, size = _INTERVAL_S * round_, sum(map(len, texts)) / 1e6
        begun = time.process_time()
        exposures = [exposed(samples(text), at) for text in texts]
        parsed = time.process_time()
        for target, exposure in zip(pool.targets, exposures, strict=True):
            windows[target.server] = windows.get(target.server, ServerWindow()).after(exposure)
        signals = pool_signals(pool.serves, windows, at, datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=at))
        understood = time.process_time()
        assert not round_ or len(signals.members) == models
        reference = exposed(_their_samples(texts[0]), at)
        theirs.append(1e3 * (time.process_time() - understood) / (len(texts[0]) / 1e6))
        assert reference == exposures[0]
        parsing.append(1e3 * (parsed - begun) / size)
        understanding.append(1e3 * (understood - parsed) / size)
        sizes.append(size)
    return ReadingCost(*(statistics.median(values[2:]) for values in (sizes, theirs, parsing, understanding)))


def _their_samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from _read(family.samples)


def _read(values: Iterable[tuple[str, dict[str, str], float]]) -> Iterator[Sample]:
    """Yield the samples that the operator reads, by their names in the text: that parser adds `_total` to counters."""
    for name, labels, value, *_ in values:
        sample = name if name in SAMPLE_NAMES else name.removesuffix("_total")
        if sample in SAMPLE_NAMES:
            yield Sample(sample, labels, value)
