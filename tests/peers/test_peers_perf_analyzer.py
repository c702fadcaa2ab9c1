"""perf_analyzer's report becomes rows."""

from tests.peers.perf_analyzer import Row, rows

REPORT = """Concurrency,Inferences/Second,Client Send,Avg latency,p50 latency,p90 latency,p95 latency,p99 latency
8,7708.5,12,1037,1001,1200,1300,1500
1,2019.0,11,492,480,510,530,600

Concurrency,Round,Latency
"""


def test_rows_by_concurrency() -> None:
    assert rows(REPORT) == [
        Row(1, 2019.0, 492.0, 480.0, 510.0, 530.0, 600.0),
        Row(8, 7708.5, 1037.0, 1001.0, 1200.0, 1300.0, 1500.0),
    ]
