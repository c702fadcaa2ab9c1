"""Metrics of many models: the text is as if made at once, and the loop has other things done while it is made."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.backends.contract import ExecutionTimes
from argosy_runtime.telemetry.argosy_families import argosy_families
from argosy_runtime.telemetry.exposition import Family, Labels, exposition
from argosy_runtime.telemetry.parts import MODELS_AT_ONCE, PIECE_BYTES, PartedText, in_parts
from argosy_runtime.telemetry.series import InService, ModelSeries
from argosy_runtime.telemetry.statistics import ModelStatistics
from argosy_runtime.telemetry.triton_families import triton_families

MS = 1_000_000
NOW = 5_000 * MS
SERVICES = (
    None,
    InService(running=3, instances=2, decoupled=False, max_batch_size=8, max_queue_delay_us=500),
    InService(running=1, instances=1, decoupled=True, max_batch_size=0, max_queue_delay_us=0),
    InService(running=4, instances=None, decoupled=False, max_batch_size=8, max_queue_delay_us=0),
)


def statistics_of(requests: Sequence[int]) -> ModelStatistics:
    """Return the statistics of requests that took so many milliseconds, one after the other."""
    statistics = ModelStatistics()
    for took in requests:
        statistics.single.add(took * MS)
        statistics.queueing.add(took * MS // 2)
        statistics.succeeded(1, took * MS, took * MS // 2, 1)
        statistics.ran(1, 1, ExecutionTimes(0, took * MS, 0))
    return statistics


def model(number: int, statistics: ModelStatistics, service: InService | None = SERVICES[1]) -> ModelSeries:
    return ModelSeries(Labels({"model": f"m{number}", "version": "1"}), statistics, number % 2, service)


def families_of(models: Sequence[ModelSeries]) -> list[Family]:
    return [*triton_families(list(models)), *argosy_families(list(models), NOW)]


def rest() -> list[Family]:
    family = Family("nv_cpu_utilization", "CPU", "gauge")
    family.add({}, 0.5)
    return [family]


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 70_000), max_size=4), st.sampled_from(SERVICES)), max_size=12),
    st.booleans(),
)
def test_the_text_is_that_of_all_at_once(models, others):
    series = [model(number, statistics_of(took), service) for number, (took, service) in enumerate(models)]
    more = rest if others else list
    text = asyncio.run(joined(in_parts(series, families_of, more)))
    assert text == exposition([*families_of(series), *more()])


def test_pieces_are_neither_everything_nor_crumbs():
    text = PartedText(families_of(()))
    for number in range(120):
        text.add(families_of([model(number, statistics_of([5]))]))
    pieces = list(text.pieces())
    assert len(pieces) > 3
    assert all(PIECE_BYTES <= len(piece) < 2 * PIECE_BYTES for piece in pieces[:-1])


async def test_other_work_is_done_between_any_two_parts_and_pieces():
    done: list[str] = []

    def read(models: Sequence[ModelSeries]) -> list[Family]:
        assert len(models) <= MODELS_AT_ONCE
        if models:
            done.append("part")
        return families_of(models)

    async def others() -> None:
        while True:
            done.append("other")
            await asyncio.sleep(0)

    working = asyncio.create_task(others())
    pieces = in_parts([model(number, statistics_of([5])) for number in range(150)], read, rest)
    while await anext(pieces, None):
        done.append("piece")
    working.cancel()
    assert done.count("part") == -(-150 // MODELS_AT_ONCE)
    assert done.count("piece") > 3
    assert all("other" in pair for pair in pairwise(done))


async def test_what_is_reported_of_a_model_is_of_one_moment():
    """While it is read requests are answered, of every model, each of which counts in several families."""
    models = [model(number, statistics_of([])) for number in range(20)]

    async def answer() -> None:
        while True:
            for item in models:
                item.statistics.single.add(MS)
                item.statistics.queueing.add(MS)
                item.statistics.succeeded(1, MS, MS, 1)
            await asyncio.sleep(0)

    answering = asyncio.create_task(answer())
    lines = (await joined(in_parts(models, families_of, rest))).decode().splitlines()
    answering.cancel()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    result = []
    for number in range(20):
        labels = f'{{model="m{number}",version="1"}}'
        names = ("nv_inference_request_success", "nv_inference_count", "argosy_request_duration_seconds_count")
        reported = {values[name + labels] for name in (*names, "argosy_queue_duration_seconds_count")}
        assert len(reported) == 1, (number, reported)
        result += reported
    assert len(set(result)) > 1, "nothing was answered meanwhile"


async def test_families_that_are_not_the_same_for_every_part_are_refused():
    text = PartedText(rest())
    with pytest.raises(ValueError, match="zip"):
        text.add([])
