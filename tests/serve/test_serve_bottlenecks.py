"""The bottleneck of requests follows from the metrics of a real server under real load."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.operator.planning import declared
from tests.serve.process import Serving, start

from argosy.api import Ensemble, InferenceModel
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.rules import Bottleneck, BottleneckKind, findings
from argosy.autoscaling.bottlenecks.subjects import subjects
from argosy.planning.facts import CurrentServer
from argosy.signals.scraping import Scraper
from argosy.signals.targets import PoolTargets, ScrapeTarget

CLIENTS, REQUESTS = 4, 15
TENSORS = """
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
SLOW = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.02 * len(requests))
        values = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)]) for value in values]
"""
INSTANCES = {"quick": 1, "starved": 1, "fed": CLIENTS}
STEPS = {"held-up": ("quick", "starved"), "well": ("quick", "fed")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Yield two ensembles of two models: of one the second has one instance, of the other one for each client."""
    folder = tmp_path_factory.mktemp("bottlenecks")
    for name, count in INSTANCES.items():
        code = SLOW.replace("0.02", "0.0005") if name == "quick" else SLOW
        version = folder / "models" / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code)
        group = f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]"
        (version.parent / "config.pbtxt").write_text(f'backend: "python" {TENSORS} {group}')
    for name, steps in STEPS.items():
        (folder / "models" / name / "1").mkdir(parents=True)
        (folder / "models" / name / "config.pbtxt").write_text(_ensemble(*steps))
    serving = start(folder / "models", folder / "server.log")
    try:
        yield serving.wait_until_ready()
    finally:
        serving.end()


def _ensemble(first: str, second: str) -> str:
    return (
        f'platform: "ensemble" {TENSORS} ensemble_scheduling {{ {_step(first, "X", "T")} {_step(second, "T", "Y")} }}'
    )


def _step(model: str, reads: str, writes: str) -> str:
    tensors = f'input_map {{ key: "X" value: "{reads}" }} output_map {{ key: "Y" value: "{writes}" }}'
    return f'step [ {{ model_name: "{model}" model_version: -1 {tensors} }} ]'


async def measured_under_load(server: Serving, name: str) -> tuple[Bottleneck, ...]:
    """Return the bottlenecks of an ensemble under constant requests."""
    models = [declared.model(name, memory=0, instances=count) for name, count in INSTANCES.items()]
    members = [*models, declared.ensemble(name, *STEPS[name])]
    scraper, names = Scraper(), {name: name for name in (*INSTANCES, name)}
    url = f"http://127.0.0.1:{server.ports['Metrics']}/metrics"
    pool = PoolTargets(PoolKey("default/p"), (ScrapeTarget("s", url, serves=names),), ())
    try:
        await scraper.read(pool, datetime.now(UTC))
        await asyncio.gather(*(asyncio.to_thread(_client, server, name) for _ in range(CLIENTS)))
        signals = await scraper.read(pool, datetime.now(UTC))
    finally:
        await scraper.close()
    declarations = [member for member in members if isinstance(member, InferenceModel | Ensemble)]
    subject = subjects(declarations, signals, [CurrentServer("s", "n", (), dict.fromkeys(INSTANCES, ()))])[name]
    return findings(subject)


def _client(server: Serving, name: str) -> None:
    for value in range(REQUESTS):
        assert server.infer(name, value) == (200, value)


async def test_a_starved_stage_is_detected_by_name_in_what_the_server_says(server: Serving) -> None:
    bottlenecks = await measured_under_load(server, "held-up")
    assert bottlenecks[0].key == (BottleneckKind.STARVED_STAGE, "starved"), bottlenecks
    assert bottlenecks[0].share is not None
    assert bottlenecks[0].share > 500


async def test_with_an_instance_for_every_client_no_stage_starves(server: Serving) -> None:
    bottlenecks = await measured_under_load(server, "well")
    assert BottleneckKind.STARVED_STAGE not in {bottleneck.kind for bottleneck in bottlenecks}, bottlenecks
