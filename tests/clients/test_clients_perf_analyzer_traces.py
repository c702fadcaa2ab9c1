"""NVIDIA's load generator has its requests traced by the trace API."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.peers.fixtures import StartServer
from tests.peers.perf_analyzer import Row
from tests.waiting import wait

MODELS = Path(__file__).resolve().parents[1] / "models_traced"
SHORT = ["--measurement-mode=count_windows", "--measurement-request-count=20", "--stability-percentage=999"]
Measure = Callable[[Sequence[str]], list[Row]]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_its_requests_are_traced(
    perf_analyzer: Measure, argosy_server: StartServer, protocol: str, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    server = argosy_server(MODELS, f"--trace-config=triton,file={file}")
    address = server.http if protocol == "http" else server.grpc
    traces = ["--trace-level=TIMESTAMPS", "--trace-rate=2", "--trace-count=6", "--log-frequency=3"]
    where = ["-m", "double", "-u", address, "-i", protocol, "--concurrency-range=1", "--max-trials=3"]
    (row,) = perf_analyzer([*where, *traces, *SHORT])
    assert row.throughput > 0
    wait(lambda: (tmp_path / "trace.json.1").exists(), 0.05)
    assert sorted(path.name for path in tmp_path.glob("trace.json*")) == ["trace.json.0", "trace.json.1"]
    wait(lambda: (tmp_path / "trace.json.1").read_text().endswith("]"), 0.05)
    heads = [entry for entry in json.loads((tmp_path / "trace.json.1").read_text()) if "model_name" in entry]
    assert [head["model_name"] for head in heads] == ["double"] * 3
