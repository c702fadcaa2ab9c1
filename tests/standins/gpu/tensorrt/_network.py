"""Networks, and reading ONNX into them."""

from typing import Any

import onnx

from . import _enums, _plans
from ._runtime import Severity, Strict, checked_logger

_SHAPE_READERS = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Tile": 1}
_SUPPORTED = {
    "Add",
    "Mul",
    "Sub",
    "Div",
    "MatMul",
    "Gemm",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Identity",
    "Cast",
    "Shape",
    "Reshape",
    "Expand",
    "NonZero",
    "Concat",
    "Softmax",
    "QuantizeLinear",
    "DequantizeLinear",
    "Constant",
    "Gather",
    "Transpose",
}


class ITensor(Strict):
    """A network's input or output."""

    _settable = ("name", "allowed_formats")

    def __init__(self, info: onnx.ValueInfoProto, is_shape_tensor: bool) -> None:
        self._info = info
        self.name = info.name
        self._is_shape_tensor = is_shape_tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return _plans.shape_of(self._info)

    @property
    def dtype(self) -> Any:
        return _enums.DataType[_plans.TYPES[self._info.type.tensor_type.elem_type]]

    @property
    def is_shape_tensor(self) -> bool:
        return self._is_shape_tensor

    def get_dimension_name(self, index: int) -> str:
        return str(self._info.type.tensor_type.shape.dim[index].dim_param)


class INetworkDefinition(Strict):
    """A network."""

    _settable = ("name",)

    def __init__(self, flags: int, builder: Any) -> None:
        self._flags = flags
        self._builder = builder
        self._model: onnx.ModelProto | None = None

    def _tensors(self, side: str) -> list[ITensor]:
        assert self._model is not None
        read = {
            node.input[_SHAPE_READERS[node.op_type]]
            for node in self._model.graph.node
            if node.op_type in _SHAPE_READERS and len(node.input) > _SHAPE_READERS[node.op_type]
        }
        made = {node.output[0] for node in self._model.graph.node if node.op_type == "Shape"}
        infos = self._model.graph.input if side == "input" else self._model.graph.output
        initializers = {weight.name for weight in self._model.graph.initializer}
        return [ITensor(info, info.name in (read | made)) for info in infos if info.name not in initializers]

    @property
    def num_inputs(self) -> int:
        return len(self._tensors("input"))

    def get_input(self, index: int) -> ITensor:
        return self._tensors("input")[index]

    @property
    def num_outputs(self) -> int:
        return len(self._tensors("output"))

    def get_output(self, index: int) -> ITensor:
        return self._tensors("output")[index]

    @property
    def num_layers(self) -> int:
        assert self._model is not None
        return len(self._model.graph.node)

    def get_flag(self, flag: Any) -> bool:
        return bool(self._flags & (1 << int(flag)))


class ParserError:
    """The parser's error about a node: methods, not attributes."""

    def __init__(self, code: Any, desc: str, index: int, name: str, operator: str) -> None:
        self._fields = (code, desc, index, name, operator)

    def code(self) -> Any:
        return self._fields[0]

    def desc(self) -> str:
        return str(self._fields[1])

    def file(self) -> str:
        return "onnxOpCheckers.cpp"

    def line(self) -> int:
        return 781

    def func(self) -> str:
        return "checkFallbackPluginImporter"

    def node(self) -> int:
        return int(self._fields[2])

    def node_name(self) -> str:
        return str(self._fields[3])

    def node_operator(self) -> str:
        return str(self._fields[4])

    def local_function_stack(self) -> list[str]:
        return []

    def __str__(self) -> str:
        code, desc, index, name, operator = self._fields
        return f"In node {index} with name: {name} and operator: {operator} ({self.func()}): {code.name}: {desc}"


class OnnxParser(Strict):
    """Reads ONNX into a network."""

    def __init__(self, network: Any, logger: Any) -> None:
        if not isinstance(network, INetworkDefinition):
            raise TypeError("incompatible function arguments: network")
        self._network = network
        self._logger = checked_logger(logger)
        self._errors: list[ParserError] = []
        self._flags: set[Any] = set()

    def parse_from_file(self, model: str) -> bool:
        if type(model) is not str:
            raise TypeError("incompatible function arguments: model")
        try:
            parsed = onnx.load(model)
        except Exception:
            self._errors = [ParserError(_enums.ErrorCode.MODEL_DESERIALIZE_FAILED, "Failed to parse", -1, "", "")]
            return False
        for index, node in enumerate(parsed.graph.node):
            if node.op_type not in _SUPPORTED:
                self._logger.log(
                    Severity.ERROR,
                    f"No importer registered for op: {node.op_type}. Attempting to import as plugin.",
                )
                desc = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'
                self._errors.append(ParserError(_enums.ErrorCode.INVALID_NODE, desc, index, node.name, node.op_type))
        self._network._model = parsed
        return not self._errors

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        return self._errors[index]

    def set_flag(self, flag: Any) -> None:
        assert isinstance(flag, _enums.OnnxParserFlag)
        self._flags.add(flag)

    def get_used_vc_plugin_libraries(self) -> list[str]:
        return []
