"""What is asked of TensorRT, read from a request. Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import Option, invalid, read

PRECISIONS: Final = ("", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
STRONG_ONLY: Final = 11
"""The first release in which a network's types are always those of the ONNX file."""

OPTIONS: Mapping[str, Option] = {
    "workspace": Option(str, ""),
    "builder_optimization_level": Option(int, None, (0, 1, 2, 3, 4, 5)),
    "max_num_tactics": Option(int, None, least=1),
    "avg_timing_iterations": Option(int, None, least=1),
    "max_aux_streams": Option(int, None, least=0),
    "max_threads": Option(int, None, least=1),
    "tactic_sources": Option(
        list, None, ("CUBLAS", "CUBLAS_LT", "CUDNN", "EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")
    ),
    "tiling_optimization_level": Option(str, None, ("NONE", "FAST", "MODERATE", "FULL")),
    "l2_limit_for_tiling": Option(str, ""),
    "hardware_compatibility_level": Option(str, None, ("NONE", "AMPERE_PLUS", "SAME_COMPUTE_CAPABILITY")),
    "version_compatible": Option(bool, False),
    "exclude_lean_runtime": Option(bool, False),
    "sparse_weights": Option(bool, False),
    "weight_streaming": Option(bool, False),
    "strict_nans": Option(bool, False),
    "profiling_verbosity": Option(str, None, ("LAYER_NAMES_ONLY", "DETAILED", "NONE")),
    "strongly_typed": Option(bool, False),
    "precision_constraints": Option(str, "none", ("none", "prefer", "obey")),
    "calibrator": Option(str, "entropy2", ("entropy2", "entropy", "minmax")),
    "profiles": Option(list),
    "timing_cache": Option(bool, True),
}
_BYTES: Final = ("workspace", "l2_limit_for_tiling")
_FLAGS: Final = {
    "version_compatible": "VERSION_COMPATIBLE",
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME",
    "sparse_weights": "SPARSE_WEIGHTS",
    "weight_streaming": "WEIGHT_STREAMING",
    "strict_nans": "STRICT_NANS",
}
_WEAK: Final = {"fp16": ("FP16",), "bf16": ("BF16",), "int8": ("INT8", "FP16")}
"""Before 11: the flags by which TensorRT may choose a type. int8 leaves the rest to fp16."""
_CONSTRAINTS: Final = {"prefer": "PREFER_PRECISION_CONSTRAINTS", "obey": "OBEY_PRECISION_CONSTRAINTS"}
_QUANTITY = re.compile(r"([0-9]+)(Ki|Mi|Gi|Ti|k|M|G|T)?")
_UNITS: Final = {
    None: 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """`flags` are set on the builder's configuration, `cleared` cleared; `attributes` are its own, by name.

    `strong`: the network's types are the file's. `conversion`: what the file is made into before, by ModelOpt: fp16,
    bf16, fp8 or int8; empty: nothing. `calibrated`: TensorRT finds int8 ranges in data itself. `profiles` are the ones
    asked for: of each the inputs' (min, opt, max) by name.
    """

    flags: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    strong: bool = False
    conversion: str = ""
    calibrated: bool = False
    calibrator: str = "entropy2"
    profiles: tuple[Mapping[str, Mapping[str, list[int]]], ...] = ()
    timing_cache: bool = True

    def arguments(self) -> dict[str, Any]:
        """As JSON has them."""
        return asdict(self)


def settings_of(request: BuildRequest, major: int, quantized: bool) -> Settings:
    """Return what a request means to a release of TensorRT. `quantized`: the file has QuantizeLinear nodes of its own.

    Raises BuildError: INVALID_OPTIONS, CALIBRATION_MISSING.
    """
    profiles = _profiles(request.options.get("profiles", ()))
    options = read({name: value for name, value in request.options.items() if name != "profiles"}, _TABLE)
    _check(request, options, major, quantized)
    strong = major >= STRONG_ONLY or options["strongly_typed"] or request.precision == "fp8"
    lower = request.precision in ("fp16", "bf16", "fp8", "int8") and not (quantized and request.precision in _QUANTIZED)
    return Settings(
        flags=_flags(request.precision, options, strong),
        cleared=("TF32",) if request.precision == "fp32" else (),
        attributes=_attributes(request.precision, options),
        strong=strong,
        conversion=request.precision if strong and lower else "",
        calibrated=request.precision == "int8" and not strong and not quantized,
        calibrator=options["calibrator"],
        profiles=profiles,
        timing_cache=options["timing_cache"],
    )


_QUANTIZED: Final = ("fp8", "int8")
_TABLE: Final = {name: option for name, option in OPTIONS.items() if name != "profiles"}


def _check(request: BuildRequest, options: Mapping[str, Any], major: int, quantized: bool) -> None:
    precision = request.precision
    if precision not in PRECISIONS:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.precision: tensorrt makes {', '.join(PRECISIONS[1:])}, and not {precision}; choose one of them",
        )
    if precision in _QUANTIZED and not quantized and not request.calibration.uri:
        raise BuildError(
            BuildFailure.CALIBRATION_MISSING,
            f"engine.calibration: {precision} finds its ranges in data: set it, or give an ONNX model that has "
            "QuantizeLinear and DequantizeLinear nodes",
        )
    if major >= STRONG_ONLY:
        for name in ("precision_constraints", "calibrator"):
            if name in request.options:
                raise invalid(name, f"is of TensorRT before {STRONG_ONLY}, and the image has {major}; leave it out")
        if request.options.get("strongly_typed") is False:
            raise invalid("strongly_typed", f"every network of TensorRT {major} is; leave it out")
    if options["exclude_lean_runtime"] and not options["version_compatible"]:
        raise invalid("exclude_lean_runtime", "is of version-compatible plans; set version_compatible: true too")
    if options["strongly_typed"] and options["precision_constraints"] != "none":
        raise invalid("precision_constraints", "a strongly typed network has the file's types; leave one of them out")


def _flags(precision: str, options: Mapping[str, Any], strong: bool) -> tuple[str, ...]:
    found = [flag for name, flag in _FLAGS.items() if options[name]]
    if not strong:
        found += _WEAK.get(precision, ())
        found += filter(None, [_CONSTRAINTS.get(options["precision_constraints"])])
    return tuple(found)


def _attributes(precision: str, options: Mapping[str, Any]) -> dict[str, Any]:
    plain = (
        "builder_optimization_level",
        "max_num_tactics",
        "avg_timing_iterations",
        "max_aux_streams",
        "max_threads",
        "tactic_sources",
        "tiling_optimization_level",
        "hardware_compatibility_level",
        "profiling_verbosity",
    )
    found = {name: options[name] for name in plain if options[name] is not None}
    found |= {name: _bytes(name, options[name]) for name in _BYTES if options[name]}
    if precision not in ("", "fp32"):
        found.setdefault("profiling_verbosity", "DETAILED")  # or no layer's type could be read back
    return found


def _bytes(name: str, text: str) -> int:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise invalid(name, f"expected a quantity such as 4Gi; found {text!r:.80}")
    return int(found[1]) * _UNITS[found[2]]


def _profiles(given: Any) -> tuple[Mapping[str, Mapping[str, list[int]]], ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, dict) for each in given):
        raise invalid("profiles", "expected a list of maps: of each input's name, its min, opt and max")
    for place, profile in enumerate(given):
        for name, shapes in profile.items():
            _check_shapes(f"profiles[{place}].{name}", shapes)
    return tuple(given)


def _check_shapes(path: str, shapes: Any) -> None:
    if not isinstance(shapes, dict) or set(shapes) != {"min", "opt", "max"}:
        raise invalid(path, "expected min, opt and max")
    for key, shape in shapes.items():
        if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
            raise invalid(f"{path}.{key}", f"expected a list of whole numbers; found {shape!r:.80}")
    least, best, most = shapes["min"], shapes["opt"], shapes["max"]
    if not len(least) == len(best) == len(most):
        raise invalid(path, "min, opt and max have different numbers of dimensions")
    for place, sizes in enumerate(zip(least, best, most, strict=True)):
        if list(sizes) != sorted(sizes):
            raise invalid(path, f"dimension {place} is not min ≤ opt ≤ max: {', '.join(map(str, sizes))}")


__all__ = ["OPTIONS", "PRECISIONS", "STRONG_ONLY", "Settings", "settings_of"]
