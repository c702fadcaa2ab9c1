"""Engines of ONNX Runtime, built for real: what they are is read from their files."""

import shutil
from dataclasses import replace
from pathlib import Path

import onnx
from tests.builder.models import convolution, perceptron, samples

from argosy_agent.contract.builds import BuildFailure, BuildState, DataSource
from argosy_builder.onnxruntime.inspecting import inspected

from .conftest import Builds


def test_static_int8_is_calibrated_verified_and_published(builds: Builds) -> None:
    report = builds.run(precision="int8", calibration=builds.data, gate=builds.gate)

    assert report.state is BuildState.READY
    assert report.accuracy is not None
    assert report.accuracy.passed
    assert 0.9 < report.accuracy.value < 1.0, "int8 is not fp32"
    assert report.accuracy.samples == 24
    inspection = inspected(builds.engine(report))
    assert inspection.integer == 2
    assert inspection.share("int8", "uint8") > 0.9
    assert [*inspection.inputs.items()] == [("x", ("float", (-1, 32)))]
    assert {report.phase for report in builds.reports} >= {"prepare", "calibrate", "quantize", "optimize", "accuracy"}
    assert "24 of 24 samples" in {report.line for report in builds.reports}


def test_dynamic_int8_needs_no_data(builds: Builds) -> None:
    report = builds.run(precision="int8", options={"per_channel": True})

    assert inspected(builds.engine(report)).operators.keys() & {"MatMulIntegerToFloat", "DynamicQuantizeMatMul"}


def test_a_node_that_is_excluded_stays_as_it_was(builds: Builds) -> None:
    report = builds.run(precision="int8", options={"nodes_to_exclude": ["first"]})

    inspection = inspected(builds.engine(report))
    assert inspection.integer == 1
    assert inspection.weights["float"] >= 32 * 64


def test_without_a_precision_the_graph_is_optimized(builds: Builds) -> None:
    report = builds.run()

    assert report.accuracy is None
    assert inspected(builds.engine(report)).share("float") == 1.0


def test_a_convolution_is_quantized_with_its_neighbours(builds: Builds) -> None:
    shutil.rmtree(builds.folder / "model")
    convolution(builds.model)
    samples(builds.folder / "images/x.npz", (3, 16, 16))
    images = DataSource(f"file://{builds.folder}/images")

    report = builds.run(precision="int8", calibration=images, inputs=(), options={"calibrate_method": "Percentile"})
    missing = builds.error(precision="int8")

    assert "QLinearConv" in inspected(builds.engine(report)).operators
    assert missing.failure is BuildFailure.CALIBRATION_MISSING


def test_an_old_opset_is_brought_up_for_channels(builds: Builds) -> None:
    perceptron(builds.model, opset=9)

    report = builds.run(precision="int8", options={"per_channel": True})

    assert onnx.load(builds.engine(report)).opset_import[0].version >= 13


def test_a_model_that_is_cut_off(builds: Builds) -> None:
    builds.model.write_bytes(builds.model.read_bytes()[:-1000])

    error = builds.error(precision="int8")

    assert (error.failure, error.passes) == (BuildFailure.MODEL_INVALID, False)
    assert "model.onnx is cut off" in error.message


def test_a_model_whose_weights_are_missing_or_cut_off(builds: Builds) -> None:
    model = onnx.load(builds.model)
    builds.model.unlink()
    onnx.save_model(model, builds.model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    weights = builds.model.with_name("weights.bin")
    content = weights.read_bytes()
    ready = builds.run()
    weights.write_bytes(content[:-100])
    cut = builds.error()
    weights.unlink()
    gone = builds.error()

    assert ready.state is BuildState.READY
    assert cut.failure is gone.failure is BuildFailure.MODEL_INVALID
    assert "weights.bin, which is cut off" in cut.message
    assert "weights.bin, which is not there" in gone.message


def test_an_operator_that_no_one_knows(builds: Builds) -> None:
    model = onnx.load(builds.model)
    model.graph.node[2].op_type = "Wiggle"
    onnx.save_model(model, builds.model)

    error = builds.error()

    assert error.failure is BuildFailure.UNSUPPORTED_MODEL
    assert "Wiggle" in error.message


def test_a_model_that_is_quantized_already(builds: Builds) -> None:
    engine = builds.engine(builds.run(precision="int8"))
    shutil.copy(engine, builds.model)

    assert builds.error(precision="int8").failure is BuildFailure.UNSUPPORTED_MODEL


def test_a_level_of_another_architecture(builds: Builds) -> None:
    error = builds.error(architecture="arm64")

    assert error.failure is BuildFailure.INVALID_OPTIONS
    assert "engine.options.graph_optimization_level" in error.message
    assert builds.run(architecture="arm64", options={"graph_optimization_level": "basic"}).state is BuildState.READY


def test_a_gpu_needs_an_onnxruntime_that_has_one(builds: Builds) -> None:
    error = builds.error(architecture="9.0", precision="fp16")

    assert error.failure is BuildFailure.BUILDER_MISSING
    assert "engine.image" in error.message


def test_calibration_data_of_another_shape(builds: Builds) -> None:
    samples(builds.folder / "wrong/x.npz", (31,))
    wrong = DataSource(f"file://{builds.folder}/wrong")

    by_dims = builds.error(precision="int8", calibration=wrong)
    by_model = builds.error(precision="int8", calibration=wrong, inputs=())

    assert by_dims.failure is by_model.failure is BuildFailure.CALIBRATION_INVALID
    assert "spec.engine.calibration.dataUri" in by_dims.message


def test_an_accuracy_that_cannot_be_met_publishes_nothing(builds: Builds) -> None:
    gate = replace(builds.gate, minimum=0.9999999)

    error = builds.error(precision="int8", gate=gate)
    report = builds.reports[-1]

    assert error.failure is BuildFailure.ACCURACY_TOO_LOW
    assert "cosine_similarity is 0.99" in error.message
    assert report.accuracy is not None
    assert not report.accuracy.passed
    assert not list((builds.folder / "store").glob("*/manifest.json"))

    ready = builds.run(precision="int8", gate=builds.gate)

    assert ready.state is BuildState.READY
    assert not {report.line for report in builds.reports} & {"24 of 24 samples"}, "finished phases do not run again"


def test_a_cached_engine_is_measured_by_another_metric(builds: Builds) -> None:
    builds.run(precision="int8", gate=builds.gate)
    same = builds.run(precision="int8", gate=replace(builds.gate, minimum=0.5))
    lines = {report.line for report in builds.reports}
    other = builds.run(
        precision="int8", gate=replace(builds.gate, metric="max_absolute_error", minimum=None, maximum=1.0)
    )
    failed = builds.error(precision="int8", gate=replace(builds.gate, minimum=0.9999999))

    assert same.cached
    assert same.accuracy is not None
    assert same.accuracy.minimum == 0.5
    assert lines
    assert other.cached
    assert other.accuracy is not None
    assert other.accuracy.metric == "max_absolute_error"
    assert failed.failure is BuildFailure.ACCURACY_TOO_LOW


def test_what_the_server_gets_is_called_as_it_looks_for_it(builds: Builds) -> None:
    builds.model.rename(builds.model.with_name("bert.onnx"))

    report = builds.run(filename="model.onnx")

    assert [path.name for path in Path(report.uri.removeprefix("file://")).iterdir()] == ["model.onnx"]
