"""Models whose weights stand in files of their own, as those above 2 GB do: each step with the bound lowered."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from tests.builder.models import FEATURES, perceptron, samples

from argosy_agent.contract.engine_options.onnxruntime import ONNXRUNTIME
from argosy_builder.onnxruntime import files, optimizing, quantizing
from argosy_builder.onnxruntime.inspecting import inspected


@pytest.fixture(autouse=True)
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, optimizing, quantizing):
        monkeypatch.setattr(module, "LARGE", 100)


def test_every_step_keeps_weights_alongside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = perceptron(tmp_path / "model/model.onnx")
    data = samples(tmp_path / "data/x.npz").parent
    options = {name: option.default_value for name, option in ONNXRUNTIME.items()} | {"activation_type": "QUInt8"}
    folders = {name: tmp_path / "work" / name for name in ("prepare", "calibrate", "quantize", "optimize")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    prepared, quantized, engine = (folders[name] / "model.onnx" for name in ("prepare", "quantize", "optimize"))
    ranges = folders["calibrate"] / "ranges.json"

    quantizing.prepare(str(model), str(prepared), options, lambda percent, line: None)
    count = quantizing.calibrate(
        str(prepared), str(ranges), str(data), [], 0, True, options, lambda percent, line: None
    )
    quantizing.quantize(str(model), str(prepared), str(quantized), str(ranges), options)
    optimizing.optimize(str(quantized), str(engine), "extended", "amd64", ["CPUExecutionProvider"])

    assert count == 24
    for path in (prepared, quantized, engine):
        assert len(list(path.parent.iterdir())) == 2, f"{path.parent} has the model and its weights, and nothing else"
        assert path.stat().st_size < 8000
    assert inspected(engine).integer == 2
    (folders["prepare"] / "model.onnx").unlink()
    engine.parent.rename(tmp_path / "served")
    session = ort.InferenceSession(tmp_path / "served/model.onnx")
    x = np.random.default_rng(1).normal(size=(4, FEATURES)).astype(np.float32)
    before = ort.InferenceSession(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(session.run(None, {"x": x})[0], before, atol=0.2)
