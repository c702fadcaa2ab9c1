"""While `argosy serve` ends, its ports answer what comes, and say that it ends."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S, Serving, wait_until
from tritonclient.utils import InferenceServerException

REFUSED = (
    "[request id: <id_unknown>] Server is stopping, scheduler for model has stopped accepting new inference requests"
)
HELD = """open({folder!r} + "/begun", "w").close()
        while not os.path.exists({folder!r} + "/released"):
            time.sleep(0.01)
        y = x"""
PIPELINE = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
ensemble_scheduling { step [ { model_name: "held" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }
"""


@pytest.fixture
def add_models(add_model: AddModel, tmp_path: Path) -> None:
    """Write a model that answers once it is released, and an ensemble of it."""
    add_model("held", execute=HELD.format(folder=str(tmp_path)))
    folder = tmp_path / "models" / "pipeline"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(PIPELINE)


@contextmanager
def stopping(server: Serving, folder: Path) -> Iterator[Future[Any]]:
    """Have the server end while a request is open, which is released in the end. Yield its answer."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.infer, "held", 7)
        try:
            wait_until((folder / "begun").exists, server.log)
            server.process.terminate()
            wait_until(lambda: "Waiting for in-flight requests to complete." in server.text, server.log)
            yield answer
        finally:
            (folder / "released").touch()


@pytest.mark.usefixtures("add_models")
def test_the_http_port_answers_and_that_of_grpc_is_closed(serve: Start, tmp_path: Path) -> None:
    server = serve().wait_until_ready()
    with stopping(server, tmp_path) as answer:
        assert server.infer("held", 1) == (503, REFUSED)
        assert server.infer("pipeline", 1) == (503, f"in ensemble 'pipeline', {REFUSED}")
        assert server.status("/v2/health/ready") == 400
        assert server.status("/v2/health/live") == 200
        assert server.metrics()
        with triton.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
            with pytest.raises(InferenceServerException) as refused:
                client.is_server_live()
            assert refused.value.status() == "StatusCode.UNAVAILABLE"
            assert "Connection refused" in refused.value.message()
    assert answer.result(PATIENCE_S) == (200, 7)
    assert server.process.wait(PATIENCE_S) == 0
    assert server.left() == []


@pytest.mark.usefixtures("add_models")
def test_the_grpc_port_answers_where_it_is_to(serve: Start, tmp_path: Path) -> None:
    server = serve("--grpc-answer-while-stopping=true").wait_until_ready()
    tensor = triton.InferInput("X", [1], "INT32")
    tensor.set_data_from_numpy(np.array([7], np.int32))
    address = f"127.0.0.1:{server.ports['GRPCInference']}"
    with triton.InferenceServerClient(address) as client, stopping(server, tmp_path) as answer:
        for model, before in (("held", ""), ("pipeline", "in ensemble 'pipeline', ")):
            with pytest.raises(InferenceServerException) as refused:
                client.infer(model, [tensor])
            assert refused.value.status() == "StatusCode.UNAVAILABLE"
            assert refused.value.message() == before + REFUSED
        assert client.is_server_live()
        assert not client.is_server_ready()
    assert answer.result(PATIENCE_S) == (200, 7)
    assert server.process.wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("add_models")
def test_the_exit_timeout_counts_from_the_signal(serve: Start, tmp_path: Path) -> None:
    server = serve("--exit-timeout-secs=1").wait_until_ready()
    with stopping(server, tmp_path):
        assert server.infer("held", 1)[0] == 503
        assert server.process.wait(10) in (0, 1)
    assert server.left() == []
