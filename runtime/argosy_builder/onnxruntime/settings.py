"""What is asked of ONNX Runtime, read from a request. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.contract import BuildError
from argosy_builder.options import Option, invalid, read

LEVELS = ("disable", "basic", "extended", "layout", "all")
"""Of graph optimization; each holds those before it."""
TYPES = ("QInt8", "QUInt8")
METHODS = ("MinMax", "Entropy", "Percentile", "Distribution")

OPTIONS: Mapping[str, Option] = {
    "graph_optimization_level": Option(str, "extended", LEVELS),
    "quantization": Option(str, "", ("static", "dynamic")),
    "quant_format": Option(str, "QDQ", ("QDQ", "QOperator")),
    "activation_type": Option(str, "", TYPES),
    "weight_type": Option(str, "QInt8", TYPES),
    "per_channel": Option(bool, False),
    "reduce_range": Option(bool, False),
    "calibrate_method": Option(str, "MinMax", METHODS),
    "op_types_to_quantize": Option(list),
    "nodes_to_quantize": Option(list),
    "nodes_to_exclude": Option(list),
    "extra_options": Option(dict),
    "skip_optimization": Option(bool, False),
    "skip_symbolic_shape": Option(bool, False),
    "auto_merge": Option(bool, False),
    "opset": Option(int, 13, least=13),
}
OF_INT8 = tuple(OPTIONS)[1:]
OF_STATIC = ("quant_format", "activation_type", "calibrate_method")

EXTRA: Mapping[str, Option] = {
    "ActivationSymmetric": Option(bool),
    "ActivationRestrictedAsymmetric": Option(bool),
    "WeightSymmetric": Option(bool),
    "EnableSubgraph": Option(bool),
    "ForceQuantizeNoInputCheck": Option(bool),
    "MatMulConstBOnly": Option(bool),
    "AddQDQPairToWeight": Option(bool),
    "OpTypesToExcludeOutputQuantization": Option(list),
    "DedicatedQDQPair": Option(bool),
    "CalibTensorRangeSymmetric": Option(bool),
    "CalibMovingAverage": Option(bool),
    "CalibMovingAverageConstant": Option(float),
    "CalibMaxIntermediateOutputs": Option(int, least=1),
    "CalibPercentile": Option(float),
    "UseQDQContribOps": Option(bool),
    "MinimumRealRange": Option(float),
    "QDQKeepRemovableActivations": Option(bool),
    "QDQDisableWeightAdjustForInt32Bias": Option(bool),
}
"""What `extra_options` may hold. SmoothQuant is not among them: it needs a package that is no part of the image."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One build's. `mode` is how it is quantized: static, dynamic, or not at all (empty); `half`: to 16 bits.

    `providers` compute on the architecture that is asked for.
    """

    mode: str
    half: bool
    level: str
    options: Mapping[str, Any]
    providers: tuple[str, ...]


def settings_of(request: BuildRequest) -> Settings:
    """Raises BuildError where ONNX Runtime cannot do what is asked: INVALID_OPTIONS, CALIBRATION_MISSING."""
    options = read(request.options, OPTIONS)
    on_gpu = request.architecture[:1].isdigit()
    _check_precision(request, on_gpu)
    mode = _mode(request, options)
    read(options["extra_options"] or {}, EXTRA, "extra_options.")
    if not options["activation_type"]:
        # Where bytes are multiplied by unsigned ones (VNNI), signed activations are slower.
        options["activation_type"] = "QUInt8" if request.architecture == "amd64" else "QInt8"
    providers = ("CUDAExecutionProvider", "CPUExecutionProvider") if on_gpu else ("CPUExecutionProvider",)
    return Settings(mode, request.precision == "fp16", options["graph_optimization_level"], options, providers)


def _check_precision(request: BuildRequest, on_gpu: bool) -> None:
    known = ("", "fp32", "fp16", "int8")
    if request.precision not in known:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.precision: onnxruntime makes {', '.join(known[1:])}, and not {request.precision}; choose one of "
            "them, or another engine.builder",
        )
    if request.precision == "fp16" and not on_gpu:
        raise BuildError(
            BuildFailure.INVALID_OPTIONS,
            f"engine.precision: onnxruntime computes fp16 on GPUs; on {request.architecture} it would convert every "
            "value to fp32 and back: choose int8 or fp32",
        )


def _mode(request: BuildRequest, options: Mapping[str, Any]) -> str:
    calibrated = bool(request.calibration.uri)
    if request.precision != "int8":
        given = [name for name in OF_INT8 if name in request.options]
        if given:
            raise invalid(given[0], "quantizes, and engine.precision is not int8; change one of them")
        return ""
    mode = str(options["quantization"] or ("static" if calibrated else "dynamic"))
    if mode == "static" and not calibrated:
        raise BuildError(
            BuildFailure.CALIBRATION_MISSING,
            "engine.calibration: static int8 finds its ranges in data: set it, or engine.options.quantization: dynamic",
        )
    if mode == "dynamic":
        given = [name for name in OF_STATIC if name in request.options]
        if given:
            raise invalid(given[0], "is of static int8 alone; set engine.calibration, or leave it out")
    return mode
