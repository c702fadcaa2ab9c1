"""NVIDIA's load generator, unchanged, against our server."""

import json
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.peers.perf_analyzer import Row
from tests.peers.server import Server

SHORT = [
    "--measurement-mode=count_windows",
    "--measurement-request-count=20",
    "--stability-percentage=999",
    "--max-trials=20",
]
"""Windows of requests: in one of time a busy machine may answer none, which perf_analyzer takes for a failure.

It needs three good windows in a row. More trials than that are for a busy machine, which spoils some.
"""

Measure = Callable[[Sequence[str]], list[Row]]


def _failures(server: Server, model: str) -> int:
    """Return how many requests to `model` failed, by the server's own metrics."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    mine = [line for line in lines if line.startswith("nv_inference_request_failure{") and f'model="{model}"' in line]
    assert mine
    return sum(int(float(line.split()[-1])) for line in mine)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    ("model", "options"),
    [("add_sub", ["-b", "4"]), ("identity", ["--shape=INPUT0:16"]), ("diamond", [])],
)
def test_measures(perf_analyzer: Measure, server: Server, protocol: str, model: str, options: list[str]) -> None:
    before = _failures(server, model)
    address = server.http if protocol == "http" else server.grpc
    where = ["-m", model, "-u", address, "-i", protocol, "--concurrency-range=1:3:2"]
    rows = perf_analyzer([*where, *options, *SHORT])
    assert [row.concurrency for row in rows] == [1, 3]
    assert all(row.throughput > 0 and row.p50_us > 0 for row in rows)
    assert _failures(server, model) == before


@pytest.mark.parametrize("options", [["--async"], ["--async", "--streaming"]])
def test_asynchronous_requests(perf_analyzer: Measure, server: Server, options: list[str]) -> None:
    where = ["-m", "add_sub", "-u", server.grpc, "-i", "grpc", "--concurrency-range=8"]
    (row,) = perf_analyzer([*where, *options, *SHORT])
    assert row.throughput > 0


@pytest.mark.parametrize("options", [["-i", "http"], ["-i", "grpc"], ["-i", "grpc", "--async", "--streaming"]])
def test_sequences(perf_analyzer: Measure, server: Server, options: list[str]) -> None:
    before = _failures(server, "sequence_sum")
    address = server.http if "http" in options else server.grpc
    where = ["-m", "sequence_sum", "-u", address, "--concurrency-range=3", "--sequence-length=5", "--input-data=zero"]
    (row,) = perf_analyzer([*where, *options, *SHORT])
    assert row.throughput > 0
    assert _failures(server, "sequence_sum") == before


def test_a_decoupled_model_over_the_stream(perf_analyzer: Measure, server: Server, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [{"IN": {"content": [1, 2, 3], "shape": [3]}, "DELAY_MS": [0]}]}))
    where = ["-m", "repeat", "-u", server.grpc, "-i", "grpc", "--streaming", "--async", f"--input-data={data}"]
    (row,) = perf_analyzer([*where, "--concurrency-range=2", *SHORT])
    assert row.throughput > 0


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tensors_in_shared_memory(perf_analyzer: Measure, server: Server, protocol: str) -> None:
    before = _failures(server, "identity")
    address = server.http if protocol == "http" else server.grpc
    where = ["-m", "identity", "-u", address, "-i", protocol, "--concurrency-range=1:3:2", "--shape=INPUT0:16384"]
    rows = perf_analyzer([*where, "--shared-memory=system", "--output-shared-memory-size=65536", *SHORT])
    assert [row.concurrency for row in rows] == [1, 3]
    assert all(row.throughput > 0 for row in rows)
    assert _failures(server, "identity") == before
    with urllib.request.urlopen(f"http://{server.http}/v2/systemsharedmemory/status", timeout=10) as answer:
        assert json.load(answer) == []
