"""The benchmark of a GPU, tried out on a CPU: what Argosy serves there is what the bare loop runs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.gpu.__main__ import ratio
from benchmarks.gpu.bare import BareLoop
from benchmarks.gpu.repository import BASE, NAME, SMALL, Setup, for_argosy, for_triton
from google.protobuf import text_format
from tests.runtime.backends.conftest import FakeHost, RecordingResponder
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import pytorch as backend
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.modelconfig import check


def test_a_server_and_the_bare_loop_run_the_same_model(tmp_path: Path) -> None:
    folder = for_argosy(tmp_path, Setup(SMALL, "cpu", batch=4, instances=1, graphs=False)) / NAME
    config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
    ids = np.random.default_rng(0).integers(0, SMALL.vocabulary, (4, SMALL.sequence))
    responder = RecordingResponder()
    spec = InstanceSpec(config, 1, folder, folder / "1", "bert_0", "KIND_CPU", 0)
    backend.load(spec, FakeHost()).execute([InferRequest(NAME, {"ids": Tensor("ids", "INT64", ids)})], responder)
    bare = BareLoop(folder / "1", "cpu")
    with torch.inference_mode():
        expected = bare._once(ids)
    np.testing.assert_allclose(responder.only().outputs[0].array, expected, rtol=1e-4, atol=1e-5)
    assert bare.rate(ids, seconds=0.0) >= 0.0


@pytest.mark.parametrize("write", [for_argosy, for_triton])
def test_the_configurations_are_in_order(tmp_path: Path, write: object) -> None:
    assert callable(write)
    folder = write(tmp_path, Setup(BASE, "cuda", batch=32, instances=2, graphs=True)) / NAME
    config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
    assert list(check(config, NAME)) == []
    assert config.instance_group[0].count == 2
    assert (folder / "1" / "model.py").is_file()


def test_ratios_are_medians_of_rounds() -> None:
    rounds = [{"torch": 100.0, "argosy": argosy} for argosy in (50.0, 96.0, 98.0)]
    assert ratio(rounds, "torch") == 0.96
    assert ratio(rounds, "triton") is None
