"""ONNX files of a lower precision, by NVIDIA's ModelOpt: what a strongly typed network needs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_builder.contract import BuildError, Progress
from argosy_builder.data import Purpose, read_samples

_LARGE = 1_900_000_000  # bytes; a protobuf message ends at 2 GiB


def convert(source: str, target: str, precision: str, progress: Progress) -> None:
    """Write `source` with fp16 or bf16 wherever its ranges allow; inputs and outputs keep their types. BuildError."""
    import onnx

    try:
        from modelopt.onnx.autocast import convert_to_mixed_precision
    except ImportError as error:
        raise _missing(precision, error) from error
    progress(0, f"converting to {precision}")
    model = convert_to_mixed_precision(onnx_path=source, low_precision_type=precision, keep_io_types=True)
    onnx.save_model(
        model, target, save_as_external_data=model.ByteSize() > _LARGE, location=f"{Path(target).name}.data"
    )
    progress(100, f"converted to {precision}")


def quantize(
    source: str,
    target: str,
    precision: str,
    data: str,
    samples: int,
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    progress: Progress,
) -> None:
    """Write `source` with QuantizeLinear and DequantizeLinear nodes for int8 or fp8; what is not quantized is fp16.

    BuildError.
    """
    try:
        from modelopt.onnx.quantization import quantize as quantized
    except ImportError as error:
        raise _missing(precision, error) from error
    declared = [TensorSpec(name, kind, tuple(dims)) for name, kind, dims in inputs]
    rows = read_samples(Path(data), declared, samples, Purpose.CALIBRATION).rows
    progress(0, f"quantizing to {precision} on {len(rows)} samples")
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    quantized(onnx_path=source, quantize_mode=precision, calibration_data=arrays, output_path=target)
    if not Path(target).is_file():
        raise BuildError(
            BuildFailure.BUILD_FAILED, f"engine.precision: ModelOpt wrote no {precision} model; see the lines before"
        )
    progress(100, f"quantized to {precision}")


def _missing(precision: str, error: ImportError) -> BuildError:
    return BuildError(
        BuildFailure.BUILDER_MISSING,
        f"engine.precision: {precision} is made by NVIDIA's ModelOpt before TensorRT (from 11 on, and with "
        f"strongly_typed): pip install 'nvidia-modelopt[onnx]' ({error}); or give an ONNX model of {precision}, or set "
        "engine.image to an image that has it",
    )


__all__ = ["convert", "quantize"]
