"""Plans served by the real process, on a stand-in of TensorRT and a played GPU that the process finds by itself."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.backends.plans import MACHINE, doubling, info, model, node, plan, standin
from tests.serve import process

PROFILES = [{"X": [[1, 2], [2, 2], [4, 2]]}, {"X": [[1, 2], [16, 2], [32, 2]]}]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Yield a function that writes a model's folder."""

    def made(name: str, files: dict[str, bytes], config: str) -> None:
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True)
        for file, content in files.items():
            (folder / "1" / file).write_bytes(content)
        (folder / "config.pbtxt").write_text(config)

    with standin():
        yield made


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., process.Serving]]:
    """Yield a function that starts a server on those models, on a GPU of this compute capability."""
    started: list[process.Serving] = []

    def made(compute_capability: str = "9.0", version: str = "10.16.1.11") -> process.Serving:
        monkeypatch.setenv("PYTHONPATH", str(MACHINE))
        monkeypatch.setenv("PLAYED_COMPUTE_CAPABILITY", compute_capability)
        monkeypatch.setenv("STANDIN_TENSORRT_VERSION", version)
        started.append(process.start(tmp_path / "models", tmp_path / "log", "--exit-on-error=false"))
        return started[-1]

    yield made
    for serving in started:
        serving.end()


def infer(serving: process.Serving, name: str, rows: list[list[float]]) -> Any:
    tensor = {"name": "X", "datatype": "FP32", "shape": [len(rows), len(rows[0])], "data": rows}
    status, body = serving.ask(f"/v2/models/{name}/infer", {"inputs": [tensor]})
    answer = json.loads(body)
    return answer["outputs"][0]["data"] if status == 200 else (status, answer["error"])


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_plan_is_all_that_a_model_needs(write: Any, start: Any, isolation: str) -> None:
    parameter = f'parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}'
    group = 'instance_group [ { count: 2 profile: [ "0", "1" ] } ] optimization { cuda { graphs: true } }'
    write("m", {"model.plan": plan(doubling(2), profiles=PROFILES)}, f'backend: "tensorrt" {group} {parameter}')
    serving = start().wait_until_ready()
    config = json.loads(serving.ask("/v2/models/m/config")[1])
    assert config["max_batch_size"] == 32
    assert config["platform"] == "tensorrt_plan"
    assert config["input"][0]["dims"] == [2]
    for batch in (1, 3, 20, 32):
        rows = [[float(value), 1.0] for value in range(batch)]
        assert infer(serving, "m", rows) == [2 * value for row in rows for value in row]
    status, message = infer(serving, "m", [[1.0, 2.0, 3.0]])
    assert status == 400
    assert "unexpected shape for input 'X' for model 'm'. Expected [-1,2], got [1,3]" in message
    assert len(serving.workers()) == (2 if isolation == "process" else 0)


def test_every_gpu_has_its_own_plan(write: Any, start: Any) -> None:
    triple = model(
        [node("Add", ["X", "X"], ["twice"]), node("Add", ["twice", "X"], ["Y"])],
        [info("X", 1, "batch", 2)],
        [info("Y", 1, "batch", 2)],
    )
    files = {
        "model.plan": plan(doubling(2), profiles=PROFILES, compute_capability="9.0"),
        "ampere.plan": plan(triple, profiles=PROFILES, compute_capability="8.0"),
    }
    own = 'cc_model_filenames [ { key: "8.0" value: "ampere.plan" } ]'
    write("m", files, f'backend: "tensorrt" {own}')
    for capability, expected in (("9.0", [2.0, 4.0]), ("8.0", [3.0, 6.0])):
        serving = start(capability).wait_until_ready()
        assert infer(serving, "m", [[1.0, 2.0]]) == expected
        serving.end()


def test_a_plan_for_another_gpu_or_release_says_what_to_do(write: Any, start: Any) -> None:
    write("old", {"model.plan": plan(doubling(2), "10.13.3.9", profiles=PROFILES)}, 'backend: "tensorrt"')
    write("other", {"model.plan": plan(doubling(2), "11.4.0.106", compute_capability="8.6")}, 'backend: "tensorrt"')
    serving = start(version="11.4.0.106")
    serving.wait_for_ports()
    process.wait_until(lambda: b"other" in serving.ask("/v2/repository/index", b"{}")[1], serving.log)
    process.wait_until(lambda: serving.text.count("unable to load plan file") >= 2, serving.log)
    reasons = {entry["name"]: entry["reason"] for entry in json.loads(serving.ask("/v2/repository/index", b"{}")[1])}
    assert "was built by TensorRT 10.13.3.9 and this server has 11.4.0.106: build it again" in reasons["old"]
    assert "expecting compute 9.0 got compute 8.6" in reasons["other"]
    assert "give each its own plan by cc_model_filenames" in reasons["other"]


def test_without_the_library_the_reason_says_how_to_get_it(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("m", {"model.plan": b""}, 'backend: "tensorrt"')
    monkeypatch.delenv("PYTHONPATH", raising=False)
    serving = process.start(tmp_path / "models", tmp_path / "log", "--exit-on-error=false")
    try:
        serving.wait_for_ports()
        process.wait_until(lambda: "needs the package" in serving.text, serving.log)
        assert (
            "backend 'tensorrt' needs the package 'tensorrt', which is not installed: pip install 'argosy[tensorrt]'"
        ) in serving.text
    finally:
        serving.end()
