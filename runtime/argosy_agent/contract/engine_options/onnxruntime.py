"""ONNX Runtime's options: its graph optimization, parameters of `quantize_static` and `quantize_dynamic`, and rules."""

from collections.abc import Iterator
from typing import Any

from .option import Fault, Option, choice, fields, flag, integer, names, number
from .precisions import Precision
from .requested import RequestedEngine, fault

_TYPES = ("QInt8", "QUInt8")

EXTRA: dict[str, Option] = {
    "ActivationSymmetric": flag("Ranges of activations are symmetric."),
    "ActivationRestrictedAsymmetric": flag("Zero points of activations are at an end or in the middle."),
    "WeightSymmetric": flag("Ranges of weights are symmetric."),
    "EnableSubgraph": flag("Subgraphs are quantized too."),
    "ForceQuantizeNoInputCheck": flag("Operators that only pass values on are quantized in any case."),
    "MatMulConstBOnly": flag("Only products with weights are quantized."),
    "AddQDQPairToWeight": flag("Weights stay floats, with both nodes behind them."),
    "OpTypesToExcludeOutputQuantization": names("Operators whose outputs are left alone."),
    "DedicatedQDQPair": flag("Each consumer has nodes of its own."),
    "CalibTensorRangeSymmetric": flag("Ranges found in data are made symmetric."),
    "CalibMovingAverage": flag("MinMax takes a moving average."),
    "CalibMovingAverageConstant": number("Its smoothing factor.", 0, 1),
    "CalibMaxIntermediateOutputs": integer("MinMax holds so many outputs at once."),
    "CalibPercentile": number("The percentile.", 0, 100),
    "UseQDQContribOps": flag("Nodes are those of com.microsoft."),
    "MinimumRealRange": number("The least width of a range.", 0, 3.4e38),
    "QDQKeepRemovableActivations": flag("Relu and Clip stay."),
    "QDQDisableWeightAdjustForInt32Bias": flag("Scales of weights are not adjusted for the bias."),
}

ONNXRUNTIME: dict[str, Option] = {
    "graph_optimization_level": choice(
        "How far the graph is optimized beforehand.",
        "disable",
        "basic",
        "extended",
        "layout",
        "all",
        default="extended",
    ),
    "quantization": choice(
        "How int8 ranges are found: in data beforehand, or in each request.",
        "static",
        "dynamic",
        default="static where there is calibration, else dynamic",
    ),
    "quant_format": choice("How a quantized graph is written.", "QDQ", "QOperator", default="QDQ"),
    "activation_type": choice("The type of activations.", *_TYPES, default="QUInt8 on amd64, else QInt8"),
    "weight_type": choice("The type of weights.", *_TYPES, default="QInt8"),
    "per_channel": flag("Each channel of a weight has its own scale.", default=False),
    "reduce_range": flag("Weights of 7 bits, for processors that overflow with 8.", default=False),
    "calibrate_method": choice(
        "How a range is found in data.", "MinMax", "Entropy", "Percentile", "Distribution", default="MinMax"
    ),
    "op_types_to_quantize": names("The operators that are quantized.", default="those that are faster so"),
    "nodes_to_quantize": names("The nodes that are quantized.", default="all that can be"),
    "nodes_to_exclude": names("Nodes that are left as they are.", default="none"),
    "extra_options": fields("Further settings of quantization, by the names that quantize_static has for them.", EXTRA),
    "skip_optimization": flag("The graph is not tidied before it is quantized.", default=False),
    "skip_symbolic_shape": flag("Shapes are not inferred by symbols before.", default=False),
    "auto_merge": flag("Symbols that contradict one another are taken for one.", default=False),
    "opset": integer("The graph is brought up to this opset at least.", minimum=13, default=13),
}
QUANTIZATION_OPTIONS = tuple(name for name in ONNXRUNTIME if name != "graph_optimization_level")
STATIC_OPTIONS = ("quant_format", "activation_type", "calibrate_method")
"""Options of static int8 only."""


def onnxruntime_contradictions(engine: RequestedEngine) -> Iterator[Fault]:
    """Yield the errors between options."""
    if engine.precision is not Precision.INT8:
        yield from _nothing_quantized(engine)
        return
    kind: Any = engine.options.get("quantization", "static" if engine.calibrated else "dynamic")
    if kind == "static" and not engine.calibrated:
        yield Fault("is required: static int8 finds ranges in data; set it, or quantization: dynamic", ("calibration",))
    if kind == "dynamic":
        if engine.calibrated:
            yield Fault("is without effect: dynamic int8 finds its ranges in requests; leave it out", ("calibration",))
        for name in STATIC_OPTIONS:
            if engine.has(name):
                yield fault(name, "is of static int8 alone; set calibration, or leave it out")


def _nothing_quantized(engine: RequestedEngine) -> Iterator[Fault]:
    for name in QUANTIZATION_OPTIONS:
        if engine.has(name):
            yield fault(name, "quantizes, and spec.engine.precision is not int8; change one of them")
    if engine.calibrated:
        yield Fault("is without effect: only int8 finds ranges in data; leave it out, or set int8", ("calibration",))
