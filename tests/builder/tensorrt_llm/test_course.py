"""The course of a build: what its tools are given, its progress, and what it leaves behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from argosy_builder.tensorrt_llm.checkpoints.engineless import calibration
from argosy_builder.tensorrt_llm.settings import settings_of

from .conftest import Standins, a_request, rewrite


def test_code_of_a_checkpoint_stays_out(model: Path, standins: Standins, build: Callable[..., Path]) -> None:
    (model / "modeling_own.py").write_text("raise SystemExit")
    rewrite(model / "config.json", auto_map={"AutoConfig": "modeling_own.Own"})
    build(a_request(), model=model)
    (call,) = [call for call in standins.calls if call["call"] == "from_hugging_face"]
    assert not call["code"]
    assert "modeling_own.py" not in call["files"]


def test_a_device_map_is_what_transformers_calls_it(
    standins: Standins, build: Callable[..., Path], texts: Path
) -> None:
    build(a_request(precision="fp8", options={"device_map": "gpu"}), texts)
    (call,) = [call for call in standins.calls if call["call"] == "quantize_and_export"]
    assert call["device_map"] == "cuda"
    request = a_request(precision="fp8", options={"backend": "pytorch", "device_map": "gpu"})
    assert calibration(settings_of(request))["device_map"] == "cuda"


def test_progress_only_grows_and_names_what_is_done(
    standins: Standins, build: Callable[..., Path], texts: Path
) -> None:
    build(a_request(precision="fp8", tensor=2), texts)
    lines = [line for _, line in standins.progress]
    assert "Calibrating batch 6" in lines
    assert "Total time of building all engines: 00:00:34" in lines
    built = [percent for percent, line in standins.progress[lines.index("Set PluginConfig.gemm_plugin to disable.") :]]
    assert built == sorted(built)
    assert built[-1] == 100
    assert (50, "Engine serialized. Total time: 00:00:01") in standins.progress


def test_nothing_is_left_in_the_temporary_folder(
    standins: Standins, build: Callable[..., Path], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "place"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    folder = build(a_request(precision="fp8"), texts)
    assert not list(temporary.iterdir())
    assert not list(folder.rglob("model.cache"))
