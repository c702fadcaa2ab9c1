"""What both servers' metrics have of models that did not load, and of ensembles before their first request."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.differential.conftest import PEERS
from tests.differential.metrics_cases import text
from tests.differential.oracle import MODELS
from tests.peers.fixtures import StartServer
from tests.peers.server import Server
from tests.waiting import wait

REASONS = ("BACKEND", "CANCELED", "OTHER", "REJECTED")
RAISES = """
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("no memory left")

    def execute(self, requests):
        return []
"""


def _copied(folder: Path, model: str, name: str) -> Path:
    shutil.copytree(MODELS / model, folder / name)
    config = folder / name / "config.pbtxt"
    config.write_text(config.read_text().replace(f'name: "{model}"', f'name: "{name}"', 1))
    return folder / name


@pytest.fixture(scope="module", params=PEERS)
def server(
    request: pytest.FixtureRequest,
    triton_server: StartServer,
    argosy_server: StartServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """Yield each side in turn, with an ensemble, a model that cannot be loaded, and one without a configuration."""
    folder = tmp_path_factory.mktemp("failed")
    for name in ("identity", "chain"):
        _copied(folder, name, name)
    raises = _copied(folder, "identity", "raises")
    (raises / "1" / "model.py").write_text(RAISES)
    with (raises / "config.pbtxt").open("a") as config:
        config.write('metric_tags { key: "team" value: "search" }\n')
    (_copied(folder, "identity", "unread") / "config.pbtxt").write_text("name: unread")
    flags = ("--exit-on-error=false", "--strict-readiness=false")
    start = {"triton": triton_server, "argosy": argosy_server}[request.param]
    started = start(folder, *flags, wait_for="/v2/models/chain/ready")
    yield started
    started.stop()


def _labels(server: Server, model: str) -> dict[str, list[str]]:
    """Return the labels of the samples of a model that are of requests, sorted, by metric."""
    labels: dict[str, list[str]] = {}
    for line in text(server).splitlines():
        if line.startswith("nv_inference_") and f'model="{model}"' in line:
            name, _, rest = line.partition("{")
            labels.setdefault(name, []).append(",".join(sorted(rest.partition("}")[0].split(","))))
    return {name: sorted(samples) for name, samples in labels.items()}


def test_a_model_that_did_not_load_has_counters_of_failures(server: Server) -> None:
    expected = [f'_team="search",model="raises",reason="{reason}",version="1"' for reason in REASONS]
    wait(lambda: bool(_labels(server, "raises")), pause_s=0.1)
    assert _labels(server, "raises") == {"nv_inference_request_failure": expected}


def test_a_model_whose_configuration_cannot_be_read_has_none(server: Server) -> None:
    wait(lambda: bool(_labels(server, "raises")), pause_s=0.1)
    assert _labels(server, "unread") == {}


def test_an_ensemble_has_counters_of_failures_before_its_first_request(server: Server) -> None:
    expected = [f'model="chain",reason="{reason}",version="1"' for reason in REASONS]
    assert _labels(server, "chain")["nv_inference_request_failure"] == expected
