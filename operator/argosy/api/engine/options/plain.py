"""What contradicts what among the options of TensorRT and of ONNX Runtime."""

from collections.abc import Iterator
from typing import Any

from argosy.api.engine.precision import Precision
from argosy.api.values.base import Fault

from .asked import Asked, wrong
from .onnxruntime import OF_QUANTIZATION, OF_STATIC


def tensorrt(asked: Asked) -> Iterator[Fault]:
    """Yield all that cannot be so together, relative to the engine."""
    if asked.on("exclude_lean_runtime") and not asked.on("version_compatible"):
        yield wrong("exclude_lean_runtime", "needs version_compatible: true; a plain plan brings no runtime along")
    if asked.options.get("hardware_compatibility_level") == "AMPERE_PLUS" and asked.precision is Precision.FP8:
        yield wrong("hardware_compatibility_level", "is AMPERE_PLUS, and Ampere has no fp8; change one of them")
    if asked.has("calibrator") and not asked.calibrated:
        yield wrong("calibrator", "needs spec.engine.calibration, whose ranges it finds")
    if asked.on("strongly_typed"):
        for name in ("precision_constraints", "calibrator"):
            if asked.has(name):
                yield wrong(name, "means nothing with strongly_typed, where the file decides; leave one of them out")
    if asked.has("l2_limit_for_tiling") and asked.options.get("tiling_optimization_level", "NONE") == "NONE":
        yield wrong("l2_limit_for_tiling", "needs tiling_optimization_level, and that is NONE")
    for index, profile in enumerate(asked.options.get("profiles", ())):
        for name, shapes in profile.items():
            yield from _profile(shapes, ("options", "profiles", index, name))


def _profile(shapes: dict[str, list[int]], path: tuple[str | int, ...]) -> Iterator[Fault]:
    missing = [each for each in ("min", "opt", "max") if each not in shapes]
    if missing:
        yield Fault(f"{', '.join(missing)} is required: a profile has a min, an opt and a max shape", path)
        return
    if len({len(each) for each in shapes.values()}) > 1:
        yield Fault("min, opt and max have different numbers of dimensions; each is a whole shape", path)
    elif any(not a <= b <= c for a, b, c in zip(shapes["min"], shapes["opt"], shapes["max"], strict=True)):
        yield Fault("each dimension must be min ≤ opt ≤ max", path)


def onnxruntime(asked: Asked) -> Iterator[Fault]:
    """Yield all that cannot be so together, relative to the engine."""
    if asked.precision is not Precision.INT8:
        yield from _nothing_quantized(asked)
        return
    kind: Any = asked.options.get("quantization", "static" if asked.calibrated else "dynamic")
    if kind == "static" and not asked.calibrated:
        yield Fault("is required: static int8 finds ranges in data; set it, or quantization: dynamic", ("calibration",))
    if kind == "dynamic":
        if asked.calibrated:
            yield Fault("is without effect: dynamic int8 finds its ranges in requests; leave it out", ("calibration",))
        for name in OF_STATIC:
            if asked.has(name):
                yield wrong(name, "is of static int8 alone; set calibration, or leave it out")


def _nothing_quantized(asked: Asked) -> Iterator[Fault]:
    for name in OF_QUANTIZATION:
        if asked.has(name):
            yield wrong(name, "quantizes, and spec.engine.precision is not int8; change one of them")
    if asked.calibrated:
        yield Fault("is without effect: only int8 finds ranges in data; leave it out, or set int8", ("calibration",))
