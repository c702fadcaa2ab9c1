"""Plans, built phase by phase in the builder's own processes against a stand-in of TensorRT, and read back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.runtime.backends.plans import FLOAT, INT64, info, model, node

from argosy_agent.contract.builds import BuildFailure, BuildState, DataSource, TensorSpec

from .conftest import Builds, become


def meta(builds: Builds, report: Any) -> Any:
    from tensorrt import _plans

    return _plans.read(builds.plan(report))[1]


def dynamic(builds: Builds, *dims: str | int, doc: str = "") -> None:
    """Write a model of one input and output whose inner dimensions vary."""
    shape = ("batch", *dims)
    of = model([node("Relu", ["x"], ["y"])], [info("x", FLOAT, *shape)], [info("y", FLOAT, *shape)], doc=doc)
    onnx.save(of, builds.model)


@pytest.mark.parametrize("version", ["10.16.1.11", "11.4.0.106"])
def test_a_plan_is_built_for_what_is_declared_measured_and_published(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    become(monkeypatch, version)
    report = builds.run(gate=builds.gate)

    assert report.state is BuildState.READY
    assert report.compiler == f"tensorrt {version}"
    assert report.accuracy is not None
    assert report.accuracy.value == pytest.approx(1.0)
    engine = meta(builds, report)
    assert engine.profiles == [{"x": [[1, 32], [4, 32], [8, 32]]}]
    assert engine.compute_capability == "9.0"
    percents = [report.percent for report in builds.reports if report.phase == "build"]
    assert percents == sorted(percents)
    assert len(set(percents)) > 3, "the monitor's steps"
    assert builds.run(gate=builds.gate).cached


def test_the_server_serves_what_was_built(builds: Builds, tmp_path: Path) -> None:
    import importlib

    from tests.runtime.backends.conftest import FakeHost, ModelFolder, RecordingResponder
    from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

    from argosy_runtime.messages import InferRequest, Tensor

    content = builds.plan(builds.run())
    backend = importlib.import_module("argosy_runtime.backends.tensorrt")
    folder = ModelFolder(tmp_path / "m", ModelConfig(name="m", backend="tensorrt"))
    folder.version_dir.mkdir(parents=True)
    (folder.version_dir / "model.plan").write_bytes(content)
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert config.max_batch_size == 8
    config.instance_group.add(name="m", kind=ModelInstanceGroup.KIND_GPU, gpus=[0])
    instance = backend.load(folder.spec(config, "KIND_GPU"), FakeHost())
    responder = RecordingResponder()
    tensor = Tensor("x", "FP32", np.ones((3, 32), np.float32))
    instance.execute([InferRequest("m", {"x": tensor})], responder)
    assert responder.only().outputs[0].shape[0] == 3
    instance.close()


@pytest.mark.parametrize(
    ("precision", "flags", "datatype"),
    [("fp16", {"FP16", "TF32"}, "Half"), ("bf16", {"BF16", "TF32"}, "BFloat16"), ("fp32", set(), "Float")],
)
def test_before_11_a_precision_is_a_flag(builds: Builds, precision: str, flags: set[str], datatype: str) -> None:
    engine = meta(builds, builds.run(precision=precision))
    assert set(engine.flags) == flags
    if precision != "fp32":
        assert engine.layers[0]["Outputs"][0]["Format/Datatype"] == datatype


@pytest.mark.parametrize(
    ("version", "options"), [("11.4.0.106", {}), ("10.16.1.11", {"strongly_typed": True})], ids=["11", "strong"]
)
def test_a_strongly_typed_network_gets_a_file_of_that_precision(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, version: str, options: dict[str, Any]
) -> None:
    become(monkeypatch, version)
    report = builds.run(precision="fp16", options=options, gate=builds.gate)

    assert {report.phase for report in builds.reports} >= {"convert", "build", "accuracy"}
    assert set(meta(builds, report).flags) == {"TF32"}
    assert meta(builds, report).layers[0]["Outputs"][0]["Format/Datatype"] == "Half"


def test_int8_before_11_is_calibrated_on_the_device(builds: Builds) -> None:
    report = builds.run(precision="int8", calibration=builds.data, options={"calibrator": "minmax"})

    assert set(meta(builds, report).flags) == {"FP16", "INT8", "TF32"}
    assert "calibrated on 24 of 24 samples" in builds.lines


@pytest.mark.parametrize("declared", [True, False])
def test_calibration_reads_data_in_the_network_s_types(builds: Builds, tmp_path: Path, declared: bool) -> None:
    rows = [{"x": [0.25 * row + column for column in range(32)]} for row in range(16)]
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "data.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    declaration = {} if declared else {"inputs": (), "outputs": ()}
    report = builds.run(precision="int8", calibration=DataSource(f"file://{folder}"), **declaration)
    assert meta(builds, report).ranges == {"x": [0.0, 0.25 * 15 + 31]}


def test_int8_from_11_on_is_in_the_file(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "11.4.0.106")
    report = builds.run(precision="int8", calibration=builds.data, gate=builds.gate)

    assert {report.phase for report in builds.reports} >= {"quantize", "build"}
    assert "quantizing to int8 on 24 samples" in builds.lines
    assert report.accuracy is not None
    assert 0.9 < report.accuracy.value <= 1.0


def test_lower_precisions_want_data_unless_the_file_has_ranges(builds: Builds) -> None:
    error = builds.error(precision="int8")
    assert error.failure is BuildFailure.CALIBRATION_MISSING
    assert "engine.calibration: int8 finds its ranges in data" in error.message
    of = model(
        [node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["y"])],
        [info("x", FLOAT, "batch", 32)],
        [info("y", FLOAT, "batch", 32)],
        [onnx.numpy_helper.from_array(np.float32(0.1), "s")],
    )
    onnx.save(of, builds.model)
    assert set(meta(builds, builds.run(precision="int8")).flags) == {"FP16", "INT8", "TF32"}


def test_options_reach_tensorrt_by_their_names(builds: Builds) -> None:
    options = {
        "workspace": "4Gi",
        "builder_optimization_level": 5,
        "max_num_tactics": 8,
        "avg_timing_iterations": 2,
        "max_aux_streams": 0,
        "max_threads": 4,
        "tactic_sources": ["EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"],
        "tiling_optimization_level": "FAST",
        "l2_limit_for_tiling": "32Mi",
        "hardware_compatibility_level": "AMPERE_PLUS",
        "version_compatible": True,
        "exclude_lean_runtime": True,
        "sparse_weights": True,
        "weight_streaming": True,
        "strict_nans": True,
        "profiling_verbosity": "DETAILED",
        "precision_constraints": "obey",
    }
    engine = meta(builds, builds.run(options=options))
    assert set(engine.flags) == {
        "TF32",
        "VERSION_COMPATIBLE",
        "EXCLUDE_LEAN_RUNTIME",
        "SPARSE_WEIGHTS",
        "WEIGHT_STREAMING",
        "STRICT_NANS",
        "OBEY_PRECISION_CONSTRAINTS",
    }
    assert engine.compatibility == "AMPERE_PLUS"
    assert engine.layers


PROFILES = [
    {"x": {"min": [1, 8], "opt": [4, 64], "max": [8, 128]}},
    {"x": {"min": [1, 128], "opt": [8, 256], "max": [8, 512]}},
]


def test_sizes_that_vary_need_profiles(builds: Builds) -> None:
    dynamic(builds, "tokens")
    loose = (TensorSpec("x", "TYPE_FP32", (-1,)),)
    error = builds.error(inputs=loose, outputs=())
    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert error.message == (
        "spec.engine.options.profiles: input 'x' may be of any size in dimension 1 ('tokens'): give its min, opt and "
        "max shapes in a profile, or fix it in spec.inputs"
    )
    engine = meta(builds, builds.run(inputs=loose, outputs=(), options={"profiles": PROFILES}))
    assert engine.profiles == [{"x": [profile["x"][key] for key in ("min", "opt", "max")]} for profile in PROFILES]
    fixed = meta(builds, builds.run(inputs=(TensorSpec("x", "TYPE_FP32", (16,)),), outputs=()))
    assert fixed.profiles == [{"x": [[1, 16], [4, 16], [8, 16]]}]


def test_a_shape_tensor_needs_its_values(builds: Builds) -> None:
    of = model(
        [node("Reshape", ["x", "s"], ["y"])],
        [info("x", FLOAT, "batch", 4), info("s", INT64, 2)],
        [info("y", FLOAT, None, None)],
    )
    onnx.save(of, builds.model)
    plain = {"inputs": (TensorSpec("x", "TYPE_FP32", (4,)),), "outputs": ()}
    error = builds.error(**plain)
    assert "input 's' decides shapes by its values" in error.message
    values = {"min": [1, 1], "opt": [4, 4], "max": [8, 4]}
    engine = meta(builds, builds.run(**plain, options={"profiles": [{"s": values}]}))
    assert engine.values == [{"s": [[1, 1], [4, 4], [8, 4]]}]
    assert engine.profiles[0]["x"] == [[1, 4], [4, 4], [8, 4]]


@pytest.mark.parametrize(
    ("changes", "failure", "message"),
    [
        ({"options": {"builder_optimisation_level": 3}}, "InvalidOptions", "did you mean 'builder_optimiz"),
        ({"options": {"workspace": "lots"}}, "InvalidOptions", "engine.options.workspace: 'lots' is no quantity"),
        (
            {"options": {"profiles": [{"z": PROFILES[0]["x"]}]}},
            "InvalidOptions",
            "profiles[0].z: the model has no such",
        ),
        (
            {"options": {"profiles": [{"x": {"min": [2, 32], "opt": [1, 32], "max": [8, 32]}}]}},
            "InvalidOptions",
            "profiles[0].x: each dimension must be min ≤ opt ≤ max",
        ),
        (
            {"options": {"profiles": [{"x": {"min": [1, 8], "opt": [1, 8], "max": [8, 8]}}]}},
            "InvalidOptions",
            "input 'x' has 32 as dimension 1, which cannot vary",
        ),
        ({"options": {"exclude_lean_runtime": True}}, "InvalidOptions", "lean_runtime: needs version_compatible: true"),
        ({"options": {"tactic_sources": ["CUBLAS"]}}, "InvalidOptions", "has no TacticSource.CUBLAS; leave it out"),
        ({"precision": "int4"}, "InvalidOptions", "engine.precision: tensorrt makes fp32, tf32, bf16"),
        ({"architecture": "8.6"}, "BuildFailed", "for compute capability 8.6, and this GPU has 9.0"),
        ({"outputs": (TensorSpec("z", "TYPE_FP32", (10,)),)}, "EngineDiffers", "the engine has no z, but y"),
    ],
)
def test_what_cannot_be_requested(builds: Builds, changes: dict[str, Any], failure: str, message: str) -> None:
    error = builds.error(**changes)
    assert (error.failure, message in error.message) == (failure, True), error.message


@pytest.mark.parametrize("name", ["precision_constraints", "calibrator"])
def test_what_11_has_not_is_reported(builds: Builds, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    become(monkeypatch, "11.4.0.106")
    value = {"precision_constraints": "obey", "calibrator": "minmax"}[name]
    error = builds.error(options={name: value})
    assert error.message.startswith(f"spec.engine.options.{name}: is of TensorRT before 11, and the image has 11")


def test_an_operator_that_tensorrt_has_not_is_named_with_its_node(builds: Builds) -> None:
    of = model([node("Einsum", ["x"], ["y"], equation="ij->ji")], [info("x", FLOAT, 1, 32)], [info("y", FLOAT, 32, 1)])
    onnx.save(of, builds.model)
    error = builds.error(max_batch_size=0, inputs=(), outputs=())
    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "node 0 'make_y' (Einsum): creator && \"Plugin not found" in error.message


@pytest.mark.parametrize(
    ("doc", "failure", "message"),
    [
        ("oom", BuildFailure.OUT_OF_GPU_MEMORY, "lower engine.options.workspace, max_num_tactics, spec.maxBatchSize"),
        ("crash", BuildFailure.CRASHED, "crashed (SIGSEGV)"),
    ],
)
def test_a_build_that_dies_or_finds_no_space(builds: Builds, doc: str, failure: BuildFailure, message: str) -> None:
    dynamic(builds, 32, doc=doc)
    error = builds.error(outputs=())
    assert (error.failure, message in error.message) == (failure, True), error.message


def test_files_that_are_no_models(builds: Builds) -> None:
    builds.model.write_bytes(b"\x08\x09 cut off")
    assert builds.error().failure is BuildFailure.MODEL_INVALID
    builds.model.rename(builds.model.with_suffix(".txt"))
    error = builds.error()
    assert error.failure is BuildFailure.MODEL_INVALID
    assert "must hold one ONNX model, and holds model.txt" in error.message


def test_a_batch_that_the_file_fixes(builds: Builds) -> None:
    of = model([node("Relu", ["x"], ["y"])], [info("x", FLOAT, 1, 32)], [info("y", FLOAT, 1, 32)])
    onnx.save(of, builds.model)
    error = builds.error(outputs=())
    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "spec.maxBatchSize: is 8, and input 'x' of the ONNX model has a fixed batch of 1" in error.message


def test_times_of_layers_are_retained_for_the_next_build(builds: Builds) -> None:
    from argosy_agent.contract.builds import digest_of

    builds.run()
    key = digest_of(["shared", "tensorrt", "tensorrt 10.16.1.11", "9.0"])[:32]

    def timings() -> bytes:
        (file,) = (builds.folder / "store" / key).rglob("timing.cache")
        return file.read_bytes()

    first = timings()
    dynamic(builds, 32)
    builds.run(outputs=())
    assert timings() == first + b"9.0 1;", "the second found the first's"
    engine = meta(builds, builds.run(options={"timing_cache": False}, outputs=()))
    assert "DISABLE_TIMING_CACHE" in engine.flags
    assert timings() == first + b"9.0 1;"


def test_a_cache_that_does_not_fit_is_left(builds: Builds) -> None:
    from argosy_agent.contract.builds import digest_of
    from argosy_agent.engines.store import open_store
    from argosy_agent.transfer.stores.settings import Settings

    key = digest_of(["shared", "tensorrt", "tensorrt 10.16.1.11", "9.0"])[:32]
    folder = builds.folder / "other"
    folder.mkdir()
    (folder / "timing.cache").write_bytes(b"of another GPU")
    open_store(builds.request.store, Settings(builds.folder, {}), builds.folder).save_phase(key, "shared", folder)
    assert builds.run().state is BuildState.READY
    assert "the timing cache is of another device or release; starting with an empty one" in builds.lines


def test_without_modelopt_the_way_out_is_reported(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    become(monkeypatch, "11.4.0.106")
    blocked = tmp_path / "blocked"
    (blocked / "modelopt").mkdir(parents=True)
    (blocked / "modelopt/__init__.py").write_text("raise ImportError('no modelopt here')")
    from tests.runtime.backends.plans import GPU, MACHINE

    # The played machine puts its own folder first.
    (blocked / "sitecustomize.py").write_text(
        (MACHINE / "sitecustomize.py")
        .read_text()
        .replace("sys.path.insert(0,", "sys.path.append(")
        .replace("Path(__file__).parents[1]", f"Path({str(MACHINE)!r}).parents[0]")
    )
    monkeypatch.setenv("PYTHONPATH", f"{blocked}:{GPU}")
    error = builds.error(precision="fp16")
    assert error.failure is BuildFailure.BUILDER_MISSING
    assert "pip install 'nvidia-modelopt[onnx]'" in error.message


def test_without_the_library_the_builder_is_missing(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy_builder.tensorrt import builder

    monkeypatch.setattr(builder, "find_spec", lambda name: None)
    error = builds.error()
    assert error.failure is BuildFailure.BUILDER_MISSING
    assert "pip install 'argosy[tensorrt]'" in error.message
