"""The settings of TensorRT that a request stands for. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import invalid, read_options
from argosy_common.quantity import parse_bytes

STRONG_ONLY: Final = 11
"""The first release in which a network's types are always those of the ONNX file."""

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
_ATTRIBUTES: Final = (
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
"""Options that are attributes of the builder's configuration. Only those that a request sets are set."""
_SIZES: Final = ("workspace", "l2_limit_for_tiling")
_QUANTIZED: Final = ("fp8", "int8")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one build.

    `flags` are set on the builder's configuration, those in `cleared` are cleared; `attributes` are its attributes by
    name. `strong`: the network's types are the file's. `conversion` is the precision to which ModelOpt converts the
    file before: fp16, bf16, fp8 or int8; empty: none. `calibrated`: TensorRT finds int8 ranges in data itself.
    `profiles` are the requested ones: the shapes min, opt and max of each input, by its name.
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
        """Return the settings as values of JSON."""
        return asdict(self)


def settings_of(request: BuildRequest, major: int, quantized: bool) -> Settings:
    """Return the settings of a build by a release of TensorRT. `quantized`: the file has QuantizeLinear nodes.

    Raises BuildError: INVALID_OPTIONS, CALIBRATION_MISSING.
    """
    _check(request, major, quantized)
    options = read_options(request)
    strong = major >= STRONG_ONLY or bool(options["strongly_typed"]) or request.precision == "fp8"
    lower = request.precision in ("fp16", "bf16", "fp8", "int8") and not (quantized and request.precision in _QUANTIZED)
    return Settings(
        flags=_flags(request.precision, options, strong),
        cleared=("TF32",) if request.precision == "fp32" else (),
        attributes=_attributes(request),
        strong=strong,
        conversion=request.precision if strong and lower else "",
        calibrated=request.precision == "int8" and not strong and not quantized,
        calibrator=options["calibrator"],
        profiles=tuple(options["profiles"] or ()),
        timing_cache=options["timing_cache"],
    )


def _check(request: BuildRequest, major: int, quantized: bool) -> None:
    """Raise BuildError where this release, or this file, cannot do what is requested."""
    precision = request.precision
    if precision in _QUANTIZED and not quantized and not request.calibration.uri:
        raise BuildError(
            BuildFailure.CALIBRATION_MISSING,
            f"spec.engine.calibration: {precision} finds its ranges in data: set it, or give an ONNX model that has "
            "QuantizeLinear and DequantizeLinear nodes",
        )
    if major >= STRONG_ONLY:
        for name in ("precision_constraints", "calibrator"):
            if name in request.options:
                raise invalid(name, f"is of TensorRT before {STRONG_ONLY}, and the image has {major}; leave it out")
        if request.options.get("strongly_typed") is False:
            raise invalid("strongly_typed", f"every network of TensorRT {major} is; leave it out")


def _flags(precision: str, options: Mapping[str, Any], strong: bool) -> tuple[str, ...]:
    flags = [flag for name, flag in _FLAGS.items() if options[name]]
    if not strong:
        flags += _WEAK.get(precision, ())
        flags += filter(None, [_CONSTRAINTS.get(options["precision_constraints"])])
    return tuple(flags)


def _attributes(request: BuildRequest) -> dict[str, Any]:
    options = request.options
    attributes = {name: options[name] for name in _ATTRIBUTES if name in options}
    attributes |= {name: parse_bytes(options[name]) for name in _SIZES if name in options}
    if request.precision not in ("", "fp32"):
        attributes.setdefault("profiling_verbosity", "DETAILED")  # or no layer's type could be read back
    return attributes


__all__ = ["STRONG_ONLY", "Settings", "settings_of"]
