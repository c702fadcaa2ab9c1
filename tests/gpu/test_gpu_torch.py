"""The torch backend on a GPU: its stream, its buffers, its graphs."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.runtime.backends.conftest import RecordingResponder
from tests.runtime.backends.fake_device import count_transfers

from argosy_runtime.backends import pytorch as backend
from argosy_runtime.backends.pytorch import graphs
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")

CONFIG = """
name: "m" backend: "pytorch" max_batch_size: 8 {extra}
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 16 ] }} ] output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }} ]
"""
GRAPHS = "optimization { cuda { graphs: true } }"


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(16, 64), torch.nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Asks(Layers):
    """Looks at its own numbers on the host, which no graph can."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.second(torch.relu(self.first(x)))
        return result if bool(result.sum() > -1e9) else result * 2


@pytest.fixture
def load(model_folder: Callable[[str], Any], host: Any) -> Callable[..., Any]:
    """Return a function that loads a model on the GPU."""

    def made(module: torch.nn.Module, extra: str = "") -> Any:
        folder = model_folder(CONFIG.format(extra=extra))
        torch.jit.save(torch.jit.script(module), folder.version_dir / "model.pt")  # type: ignore[no-untyped-call]
        return backend.load(folder.spec(kind="KIND_GPU"), host)

    return made


def ask(rows: int, seed: int) -> InferRequest:
    array = np.random.default_rng(seed).standard_normal((rows, 16), np.float32)
    return InferRequest("m", {"x": Tensor("x", "FP32", array)})


def expected(module: torch.nn.Module, request: InferRequest) -> np.ndarray:
    with torch.inference_mode():
        result: np.ndarray = module(torch.from_numpy(request.inputs["x"].array)).numpy()
    return result


def check(instance: Any, module: torch.nn.Module, requests: list[InferRequest]) -> None:
    responder = RecordingResponder()
    instance.execute(requests, responder)
    for index, request in enumerate(requests):
        response = responder.only(index)
        assert response.error is None, response.error
        np.testing.assert_allclose(response.outputs[0].array, expected(module, request), rtol=1e-2, atol=1e-3)


def test_batches_go_there_and_back_on_a_stream_of_the_instances_own(load: Callable[..., Any]) -> None:
    streams = set()
    module = Layers()
    instance = load(module)
    framework = instance._batcher._framework
    call = framework._call

    def noted(inputs: Any) -> Any:
        streams.add(torch.cuda.current_stream().cuda_stream)
        return call(inputs)

    framework._call = noted
    with count_transfers() as counts:
        for seed in range(4):
            check(instance, module, [ask(2, seed), ask(3, seed + 10)])
    assert (counts.to_device, counts.to_host) == (4, 4)
    assert streams == {framework._transfers._stream.cuda_stream}
    assert streams != {torch.cuda.default_stream().cuda_stream}
    pinned = framework._transfers._incoming.take(64)
    assert pinned is not None
    assert torch.from_numpy(pinned).is_pinned()


def test_graphs_give_what_the_model_gives(load: Callable[..., Any], host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = []
    capture = graphs.CudaCapture.__call__
    monkeypatch.setattr(
        graphs.CudaCapture,
        "__call__",
        lambda self, call, inputs: captured.append(inputs["x"].shape[0]) or capture(self, call, inputs),
    )
    module = Layers()
    instance = load(module, GRAPHS)
    for seed, rows in enumerate([1, 2, 3, 4, 5, 8, 7, 1, 3, 6]):
        check(instance, module, [ask(rows, seed)])
    check(instance, module, [ask(2, 50), ask(3, 51)])
    assert captured == [1, 2, 4, 8]
    assert [line for level, line in host.lines if level == "warning"] == []


def test_what_cannot_be_captured_runs_without(load: Callable[..., Any], host: Any) -> None:
    module = Asks()
    instance = load(module, GRAPHS)
    for seed in range(3):
        check(instance, module, [ask(3, seed)])
    warnings = [line for level, line in host.lines if level == "warning"]
    assert len(warnings) == 1
    assert "run without a CUDA graph" in warnings[0]


def test_instances_side_by_side(model_folder: Callable[[str], Any], host: Any) -> None:
    """Two threads, each with its instance, one of which captures graphs meanwhile."""
    module = Layers()
    folder = model_folder(CONFIG.format(extra=GRAPHS))
    torch.jit.save(torch.jit.script(module), folder.version_dir / "model.pt")  # type: ignore[no-untyped-call]
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            instance = backend.load(folder.spec(kind="KIND_GPU"), host)
            for turn in range(50):
                check(instance, module, [ask(1 + (turn + seed) % 8, turn)])
            instance.close()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert failures == []
