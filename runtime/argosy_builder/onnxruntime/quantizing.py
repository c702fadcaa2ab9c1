"""The steps to int8, each in a process of its own: prepare the graph, find ranges in data, write the quantized model.

Arguments are JSON; errors are BuildError.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.quantization import (
    CalibrationMethod,
    QuantFormat,
    QuantType,
    create_calibrator,
    quant_pre_process,
    quantize_dynamic,
    quantize_static,
    save_tensors_data,
)
from onnxruntime.quantization.registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_builder.contract import Array, BuildError, Progress
from argosy_builder.data import Purpose, read_samples

from . import names
from .files import LARGE, loaded, save, weight_bytes
from .inspecting import inspected
from .sessions import first_line_of, opened

CHUNK = 16
"""So many samples' outputs are held at once."""
SLOW_WHEN_DYNAMIC = ("Conv", "Transpose")
"""Operators whose dynamic form is slower than fp32, so that they are left alone unless they are named."""
_CALIBRATION = {
    "CalibTensorRangeSymmetric": "symmetric",
    "CalibMovingAverage": "moving_average",
    "CalibMovingAverageConstant": "averaging_constant",
    "CalibMaxIntermediateOutputs": "max_intermediate_outputs",
    "CalibPercentile": "percentile",
}
"""`quantize_static`'s extra options that are the calibrator's, by its names."""


def prepare(source: str, target: str, options: Mapping[str, Any], progress: Progress) -> None:
    """Write the model to `target` with shapes inferred and its graph tidied by `quant_pre_process`."""
    model = loaded(Path(source))
    large = weight_bytes(model) > LARGE
    with tempfile.TemporaryDirectory(dir=Path(target).parent.parent) as scratch:
        first = Path(scratch, "model.onnx")
        save(_upgraded(model, options["opset"]), first)
        del model
        chosen = {name: options[name] for name in ("skip_optimization", "skip_symbolic_shape", "auto_merge")}
        try:
            _prepared(first, Path(target), large, chosen)
        except Exception as error:
            if chosen["skip_symbolic_shape"]:
                raise _unsupported("cannot be prepared for int8", error, "skip_optimization: true") from error
            progress(-1, f"symbolic shapes cannot be inferred, and are left out: {error}")
            _prepared(first, Path(target), large, {**chosen, "skip_symbolic_shape": True})


def _prepared(source: Path, target: Path, large: bool, chosen: Mapping[str, bool]) -> None:
    more: dict[str, Any] = {}
    if large:
        more = {
            "save_as_external_data": True,
            "all_tensors_to_one_file": True,
            "external_data_location": f"{target.name}.data",
        }
    quant_pre_process(source, target, **chosen, **more)


def _upgraded(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return the model in this opset at least. Raises BuildError where it cannot be converted."""
    now = next((imported.version for imported in model.opset_import if imported.domain in ("", "ai.onnx")), opset)
    if now >= opset:
        return model
    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:
        raise _unsupported(f"cannot go from opset {now} to {opset}", error, "another opset") from error


def calibrate(
    source: str,
    ranges: str,
    data: str,
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    count: int,
    batched: bool,
    options: Mapping[str, Any],
    progress: Progress,
) -> int:
    """Write the ranges of tensors over the samples in the folder `data` to `ranges`; return the number of samples."""
    specs = [TensorSpec(name, kind, tuple(dims)) for name, kind, dims in inputs] or _own_inputs(Path(source), batched)
    rows = read_samples(Path(data), specs, count, Purpose.CALIBRATION).rows
    if not rows:
        raise Purpose.CALIBRATION.error("holds texts; this model needs its input tensors")
    extra = options["extra_options"] or {}
    options_of_calibration = {_CALIBRATION[name]: value for name, value in extra.items() if name in _CALIBRATION}
    with tempfile.TemporaryDirectory(dir=Path(ranges).parent.parent) as scratch:
        calibrator = create_calibrator(
            Path(source),
            options["op_types_to_quantize"] or sorted({*QLinearOpsRegistry, *QDQRegistry}),
            str(Path(scratch, "augmented.onnx")),
            CalibrationMethod[options["calibrate_method"]],
            use_external_data_format=_is_large(Path(source)),
            extra_options=options_of_calibration,
        )
        for at in range(0, len(rows), CHUNK):
            _collect(calibrator, rows[at : at + CHUNK], batched)
            done = min(at + CHUNK, len(rows))
            progress(100 * done // len(rows), f"{done} of {len(rows)} samples")
        save_tensors_data(calibrator.compute_data(), Path(ranges))
    return len(rows)


def _own_inputs(path: Path, batched: bool) -> list[TensorSpec]:
    """Return what the file says that it takes."""
    types = {"float": "FP32", "float16": "FP16", "double": "FP64", "string": "STRING"}
    return [
        TensorSpec(name, f"TYPE_{types.get(kind, kind.upper())}", dims[1:] if batched else dims)
        for name, (kind, dims) in inspected(path).inputs.items()
    ]


def _collect(calibrator: Any, rows: Sequence[Mapping[str, Array]], batched: bool) -> None:
    try:
        calibrator.collect_data(_Reader(rows, batched))
    except Exception as error:
        raise Purpose.CALIBRATION.error(
            f"the model does not take these samples: {first_line_of(error)}; correct spec.inputs or the data"
        ) from error


class _Reader:
    """Samples as `CalibrationDataReader` gives them: one a request, with a batch of one where the model has batches."""

    def __init__(self, rows: Sequence[Mapping[str, Array]], batched: bool) -> None:
        self._rows: Iterator[Mapping[str, Array]] = iter(rows)
        self._batched = batched

    def get_next(self) -> Mapping[str, Array] | None:
        """Return the next one, None behind the last."""
        row = next(self._rows, None)
        return row if row is None or not self._batched else {name: array[None] for name, array in row.items()}


def quantize(model: str, source: str, target: str, ranges: str, options: Mapping[str, Any]) -> None:
    """Quantize the prepared model in `source` to int8: static with the file `ranges`, dynamic without (empty)."""
    path = Path(source)
    named = names.in_prepared(loaded(Path(model), weights=False).graph, loaded(path, weights=False).graph, options)
    common: dict[str, Any] = {
        "op_types_to_quantize": named["op_types_to_quantize"] or _default_types(path, static=bool(ranges)),
        "per_channel": options["per_channel"],
        "reduce_range": options["reduce_range"],
        "weight_type": QuantType[options["weight_type"]],
        "nodes_to_quantize": named["nodes_to_quantize"],
        "nodes_to_exclude": named["nodes_to_exclude"],
        "use_external_data_format": _is_large(path),
        "extra_options": dict(options["extra_options"] or {}),
    }
    try:
        if ranges:
            quantize_static(
                path,
                target,
                None,
                quant_format=QuantFormat[options["quant_format"]],
                activation_type=QuantType[options["activation_type"]],
                calibrate_method=CalibrationMethod[options["calibrate_method"]],
                calibration_cache_path=ranges,
                **common,
            )
        else:
            quantize_dynamic(path, target, **common)
    except (ValueError, TypeError, RuntimeError, KeyError, AttributeError) as error:
        raise _unsupported("cannot be quantized", error, "nodes_to_exclude or op_types_to_quantize") from error
    opened(Path(target), ("CPUExecutionProvider",))


def _default_types(path: Path, *, static: bool) -> list[str] | None:
    """Return the operators to quantize where none are named; None for all that onnxruntime can."""
    there = inspected(path).operators
    if not static:
        chosen = [name for name in IntegerOpsRegistry if name not in SLOW_WHEN_DYNAMIC]
        if not any(name in there for name in ("MatMul", "Gemm", "Attention", "LSTM")) and "Conv" in there:
            raise BuildError(
                BuildFailure.CALIBRATION_MISSING,
                "engine.calibration: the model is made of convolutions, whose dynamic int8 is slower than fp32: set "
                "calibration, or name Conv in engine.options.op_types_to_quantize",
            )
        return chosen
    # Between the products of a transformer, whole numbers cost more than they save; a convolution's neighbours join it.
    return None if "Conv" in there else [name for name in ("MatMul", "Gemm", "Gather") if name in there] or None


def _is_large(path: Path) -> bool:
    return weight_bytes(loaded(path, weights=False)) > LARGE


def _unsupported(what: str, error: Exception, way_out: str) -> BuildError:
    message = first_line_of(error)
    return BuildError(BuildFailure.UNSUPPORTED_MODEL, f"the model {what}: {message}; try engine.options {way_out}")
