"""The chart's rules and dashboards on the real Prometheus, which scrapes a real server: they find what they ask for."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.waiting import wait_for
from e2e.starting import give_up
from tests.chart.monitoring.files import DASHBOARDS, RECORDS, RULES, expressions, variables
from tests.peers.prometheus import Prometheus, Scraped
from tests.serve.process import Serving, start

CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 1000 }
version_policy { all {} }
parameters { key: "version_traffic" value { string_value: '{"weights": {"1": 1000000}}' } }
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)]) for value in values]
"""
LABELS = {"namespace": "a", "pool": "p", "server": "p-0", "pod": "p-0-x"}
CHOSEN = {"namespace": "a", "pool": "p", "model": "m", "ensemble": "m", "stage": "m"}
ABSENT = re.compile(
    # what is not there on a processor, without a response cache, of a model that answers once
    r"nv_gpu_|gpu_utilization|gpu_memory|nv_cache_|cache_hits|vllm:|token|kv_cache|prefix_cache|preemptions|engine_waiting|between_responses"
    # a day's history; failures, of which there are none; the operator, and an activator
    r"|p99_baseline|failure.*> 0|argosy_(?:scaling|bottleneck|ensemble_step|reconcile|activator|rollout)_?"
)
RECORDED = [rule["record"] for rule in RECORDS]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield one with the chart's rules, which scrapes a server that answered a few requests."""
    folder = tmp_path_factory.mktemp("monitoring")
    version = folder / "models" / "m" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(MODEL)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    started = Prometheus(folder / "prometheus", interval_s=0.5, rules=RULES.read_text())
    try:
        started.start()
    except ClusterUnavailableError as error:
        give_up(error)
    serving = start(folder / "models", folder / "server.log")
    try:
        serving.wait_until_ready()
        started.scrape([Scraped([f"127.0.0.1:{serving.ports['Metrics']}"], LABELS)])
        wait_for("the server to be scraped", lambda: started.value('argosy_instances{model="m"}') == 1, 60)
        asyncio.run(_send_requests(serving))
        wait_for("the requests to be counted", lambda: (started.value("argosy:requests:rate5m") or 0) > 0, 60)
        yield started
    finally:
        serving.end()
        started.stop()


async def _send_requests(serving: Serving) -> None:
    """Send requests from several clients at once, one row each."""

    def ask(value: int) -> int:
        tensor = {"name": "X", "datatype": "INT32", "shape": [1, 1], "data": [value]}
        return serving.ask("/v2/models/m/infer", {"inputs": [tensor]})[0]

    assert set(await asyncio.gather(*(asyncio.to_thread(ask, value) for value in range(40)))) == {200}


@pytest.mark.parametrize("name", [name for name in RECORDED if not ABSENT.search(name)])
def test_what_is_recorded_has_a_value(prometheus: Prometheus, name: str) -> None:
    wait_for(f"{name} to be recorded", lambda: prometheus.value(f'{name}{{namespace="a",pool="p"}}') is not None, 30)


def test_what_is_recorded_is_what_was_requested(prometheus: Prometheus) -> None:
    assert prometheus.value('argosy:error:ratio_rate5m{model="m"}') == 0
    rows = prometheus.value('argosy:batch_rows:mean_5m{model="m"}')
    fill = prometheus.value('argosy:batch:fill_5m{model="m"}')
    assert rows is not None
    assert 1 <= rows <= 4
    assert fill == pytest.approx(rows / 4)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_dashboards_queries_are_answered(prometheus: Prometheus, name: str) -> None:
    queries = [_filled_in(expr) for expr in expressions(DASHBOARDS[name]) if not ABSENT.search(expr)]
    assert len(queries) > 5
    unanswered = [expr for expr in queries if prometheus.value(expr) is None]
    assert unanswered == []


def test_what_the_reader_chooses_from_is_there(prometheus: Prometheus) -> None:
    for dashboard in DASHBOARDS.values():
        for label, metric in variables(dashboard):
            if not ABSENT.search(metric):
                assert prometheus.value(f"count(({_filled_in(metric)}) * 0 + 1) by ({label}) > 0"), metric


def _filled_in(expr: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: CHOSEN[match[1]], expr)
