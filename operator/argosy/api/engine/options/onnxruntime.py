"""ONNX Runtime's options: of its graph optimization, and parameters of `quantize_static` and `quantize_dynamic`."""

from .option import Option, choice, flag, names

_TYPES = ("QInt8", "QUInt8")

ONNXRUNTIME: dict[str, Option] = {
    "graph_optimization_level": choice(
        "How far the graph is optimized beforehand.", "disable", "basic", "extended", "all", default="extended"
    ),
    "quantization": choice(
        "How int8 ranges are found: in data beforehand, or in each request.",
        "static",
        "dynamic",
        default="static where there is calibration, else dynamic",
    ),
    "quant_format": choice("How a quantized graph is written.", "QDQ", "QOperator", default="QDQ"),
    "activation_type": choice("The type of activations.", *_TYPES, default="QInt8"),
    "weight_type": choice("The type of weights.", *_TYPES, default="QInt8"),
    "per_channel": flag("Each channel of a weight has its own scale.", default="false"),
    "reduce_range": flag("Weights of 7 bits, for processors that overflow with 8.", default="false"),
    "calibrate_method": choice(
        "How a range is found in data.", "MinMax", "Entropy", "Percentile", "Distribution", default="MinMax"
    ),
    "op_types_to_quantize": names("The operators that are quantized.", default="all that can be"),
    "nodes_to_quantize": names("The nodes that are quantized.", default="all that can be"),
    "nodes_to_exclude": names("Nodes that are left as they are.", default="none"),
}
OF_QUANTIZATION = tuple(name for name in ONNXRUNTIME if name != "graph_optimization_level")
OF_STATIC = ("quant_format", "activation_type", "calibrate_method")
