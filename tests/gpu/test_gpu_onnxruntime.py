"""The ONNX Runtime backend on a GPU: everything of the way to a device and back, on a real one."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.conftest import RecordingResponder
from tests.runtime.backends.fake_device import count_transfers
from tests.runtime.backends.test_device_path import CONFIG, KINDS, ask, host_tensor, output, save_onnx

from argosy_runtime.backends import onnxruntime as backend

pytestmark = pytest.mark.usefixtures("cuda_provider")


@pytest.fixture
def load(model_folder: Callable[[str], Any], host: Any) -> Callable[[str], Any]:
    def made(kind: str) -> Any:
        folder = model_folder(CONFIG.format(name="m", backend="onnxruntime", kind=kind))
        save_onnx(folder.version_dir, KINDS[kind][1])
        return backend.load(folder.spec(kind="KIND_GPU"), host)

    return made


@pytest.mark.parametrize("kind", ["FP32", "FP16", "INT64"])
def test_batches_go_there_once_and_come_home_once(load: Callable[[str], Any], kind: str) -> None:
    instance = load(kind)
    for _ in range(3):
        responder = RecordingResponder()
        with count_transfers() as counts:
            instance.execute(
                [ask(host_tensor([1, 2], kind=kind)), ask(host_tensor([3, 4], [5, 6], kind=kind))], responder
            )
        assert output(responder.only(0)).array.tolist() == [[2, 4]]
        assert output(responder.only(1)).array.tolist() == [[6, 8], [10, 12]]
        assert counts.to_host == 1
    instance.close()


def test_what_is_retained_is_taken_without_a_copy(load: Callable[[str], Any]) -> None:
    instance, responder = load("FP32"), RecordingResponder()
    requests = [ask(host_tensor([1, 2], [3, 4]), keep=True), ask(host_tensor([5, 6]), keep=True)]
    instance.execute(requests, responder)
    middle = [output(responder.only(index)) for index in range(2)]
    responder.sent.clear()
    with count_transfers() as counts:
        instance.execute([ask(tensor.renamed("A"), keep=True) for tensor in middle], responder)
    assert (counts.to_device, counts.to_host) == (0, 0)
    assert output(responder.only(1)).array.tolist() == [[20, 24]]
    instance.close()
