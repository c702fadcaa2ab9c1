"""An HTTP inference request's body: V2 JSON, the binary tensor extension, or one raw input."""

import re
from collections.abc import Callable
from typing import Any

from argosy_runtime.errors import FaultyInputsError, internal, invalid
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.protocol.json import data as json_data
from argosy_runtime.protocol.json import parameters as json_parameters
from argosy_runtime.protocol.json.text import loads, member, missing, typed, unsigned, wrong_type
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.protocol.tensors import DTYPES, InputBytes
from argosy_runtime.shared_memory.locations import TensorLocation, TensorLocations
from argosy_runtime.tensors import Data, raw_tensor

from .response import OutputEncoding

HEADER_LENGTH = "Inference-Header-Content-Length"
DEFAULT_MAX_INPUT_SIZE = 1 << 26
ENDPOINT = "HTTP end point"
"""The name of this endpoint in messages."""
MOST_LENGTH = 2**31 - 1
"""The most bytes of a body, and of the JSON in it, that a header may declare."""
_LENGTH = re.compile(r"[+-]?[0-9]+")
_RAW_INPUT = "raw_input"
"""The name in messages of an input that the client did not name."""
_MOST_DIGITS = 1000
_USE_FLAG = "Use --http-max-input-size to increase the limit."


def parse_header_length(header: str | None, content_length: int) -> int:
    """Return how many bytes of the body are JSON; all of them without the header, 0 for a raw body."""
    if header is None:
        return content_length
    if not _LENGTH.fullmatch(header):
        raise invalid(f"Unable to parse {HEADER_LENGTH}, got: {header}")
    # Python refuses to read numbers of thousands of digits.
    length = int(header) if len(header) < _MOST_DIGITS else MOST_LENGTH + 1
    if not -MOST_LENGTH - 1 <= length <= MOST_LENGTH:
        raise invalid(length_out_of_range(HEADER_LENGTH, header))
    if not 0 <= length <= content_length:
        raise invalid(f"inference header size should be in range (0, {content_length}), got: {header}")
    return length


def length_out_of_range(header: str, value: str) -> str:
    """Return the message for a header that declares more bytes than it may."""
    return f"Unable to parse {header}, value is out of range [ {-MOST_LENGTH - 1}, {MOST_LENGTH} ], got: {value}"


def too_long(length: int, limit: int) -> str:
    """Return the message for JSON that exceeds the limit; both in bytes."""
    message = f"request JSON size of {length} bytes exceeds the maximum allowed input size of {limit} bytes."
    return f"{message} {_USE_FLAG}"


def decode(
    body: Data,
    header_length: int,
    model_name: str,
    model_version: str,
    limit: int = DEFAULT_MAX_INPUT_SIZE,
) -> tuple[InferRequest, OutputEncoding]:
    """Decode a body whose first `header_length` (> 0) bytes are JSON and the rest binary inputs in order.

    Binary inputs are views of `body`, not decoded yet; inputs in shared memory are empty, and to be read by their
    locations. `id`, `parameters` and `outputs` may be null, which is the same as missing.
    """
    if header_length > limit:
        raise invalid(too_long(header_length, limit))
    only_json = header_length == len(body)
    document = loads(body if only_json else memoryview(body)[:header_length])
    if type(document) is not dict:
        raise internal(f"Unable to parse 'inputs': {missing('inputs')}")
    request = InferRequest(model_name, {}, model_version)
    if document.get("id") is not None:
        request.id = typed(document["id"], str, "Unable to parse 'id'")
    parameters = document.get("parameters")
    binary_default = parameters is not None and json_parameters.apply(parameters, request)
    inputs = _Inputs(request, memoryview(body)[header_length:], limit)
    inputs.read(document)
    encoding = _read_outputs(document, request, binary_default, inputs.locations)
    inputs.check()
    return request, encoding


def decode_raw(
    body: Data,
    model_name: str,
    model_version: str,
    model: Callable[[], ModelView],
    limit: int = DEFAULT_MAX_INPUT_SIZE,
) -> tuple[InferRequest, OutputEncoding]:
    """Decode a body that is the model's only input and nothing else; all outputs are to be binary."""
    if len(body) > limit:
        raise invalid(
            f"Raw input has a byte_size ({len(body)} bytes) that exceeds the maximum allowed value of "
            f"{limit} bytes. "
            f"{_USE_FLAG}"
        )
    request = InferRequest(model_name, {}, model_version)
    view = model()
    prefix = request.log_prefix
    if len(view.inputs) != 1:
        raise invalid(
            f"{prefix}Raw request must only have 1 input (found 1) to be deduced but got {len(view.inputs)} "
            "inputs "
            f"in '{model_name}' model configuration"
        )
    ((name, declared),) = view.inputs.items()
    shape = _raw_shape(prefix, name, declared.datatype, declared.shape, view.batches, len(body))
    read = InputBytes(model_name, prefix)
    if declared.datatype == "BYTES":
        array = read.strings(_RAW_INPUT, shape, [bytes(body)])
    else:
        array = read.array(_RAW_INPUT, declared.datatype, shape, body)
    try:
        read.check(request)
    except FaultyInputsError as fault:
        # The model has no input of the name in it.
        raise invalid(fault.message) from None
    request.inputs[name] = Tensor(name, declared.datatype, array)
    return request, OutputEncoding(binary_default=True)


def _raw_shape(
    prefix: str, name: str, datatype: str, declared: tuple[int, ...], batches: bool, size: int
) -> tuple[int, ...]:
    batch, dims = ((1,), declared[1:]) if batches else ((), declared)
    dynamic = [axis for axis, dim in enumerate(dims) if dim == -1]
    if len(dynamic) > 1:
        raise invalid(
            f"{prefix}The shape of the raw input '{name}' can not be deduced because there are more than one "
            "variable-sized dimension"
        )
    fixed = 1
    for dim in dims:
        fixed *= dim if dim != -1 else 1
    if datatype == "BYTES":
        if dynamic or fixed != 1:
            raise invalid(f"{prefix}For BYTE datatype raw input '{name}', the model must have input shape [1]")
    elif dynamic:
        free = size // (fixed * DTYPES[datatype].itemsize)
        dims = tuple(free if dim == -1 else dim for dim in dims)
    return batch + dims


class _Inputs:
    """Reads `inputs` one by one, and takes the binary ones from the bytes behind the JSON in their order."""

    __slots__ = ("_binary", "_limit", "_offset", "_read", "_request", "locations")

    def __init__(self, request: InferRequest, binary: memoryview, limit: int) -> None:
        self.locations: TensorLocations | None = None
        self._request = request
        self._binary = binary
        self._offset = 0
        self._limit = limit
        self._read = InputBytes(request.model_name, request.log_prefix)

    def read(self, document: dict[str, Any]) -> None:
        for item in member(document, "inputs", list, "Unable to parse 'inputs'"):
            tensor = self._tensor(item)
            self._request.inputs[tensor.name] = tensor
        if self._offset != len(self._binary):
            raise invalid(f"unexpected additional input data for model '{self._request.model_name}'")

    def check(self) -> None:
        """Raise FaultyInputsError if data does not fit."""
        self._read.check(self._request)

    def _tensor(self, item: Any) -> Tensor:
        parameters = _check_content(item)
        name = member(item, "name", str, "Unable to parse 'name'")
        datatype = member(item, "datatype", str, "Unable to parse 'datatype'")
        shape = _shape(member(item, "shape", list, "Unable to parse 'shape'"))
        if name in self._request.inputs:
            raise invalid(f"{self._request.log_prefix}input '{name}' already exists in request")
        if "binary_data_size" in parameters:
            data = self._take(name, parameters["binary_data_size"])
            return self._read.tensor(name, datatype, shape, data)
        location = _location(parameters)
        if location is not None:
            self.locations = self.locations or TensorLocations()
            self.locations.inputs[name] = location
            return raw_tensor(name, datatype, shape, b"")
        return Tensor(name, datatype, json_data.read(item["data"], name, datatype, shape, self._read, self._limit))

    def _take(self, name: str, declared: Any) -> memoryview:
        size = unsigned(declared, "Unable to parse 'binary_data_size'")
        end = self._offset + size
        if end > len(self._binary):
            raise invalid(
                f"unexpected size for input '{name}', expecting {end - len(self._binary)} additional bytes "
                "for "
                f"model '{self._request.model_name}'"
            )
        data = self._binary[self._offset : end]
        self._offset = end
        return data


def _check_content(item: Any) -> dict[str, Any]:
    """Return the input's parameters. Raises INVALID_ARG unless exactly one field says where its data is."""
    holder = item if type(item) is dict else {}
    parameters = holder.get("parameters")
    parameters = parameters if type(parameters) is dict else {}
    set_fields = [
        field
        for field, present in (
            ("data", "data" in holder),
            ("binary_data_size", "binary_data_size" in parameters),
            ("shared_memory_region", "shared_memory_region" in parameters),
        )
        if present
    ]
    if len(set_fields) != 1:
        present_fields = " set" + "".join(f" '{field}'" for field in set_fields) if set_fields else " no field is set"
        raise invalid(
            "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
            f"'shared_memory_region' in 'parameters'. But{present_fields}"
        )
    return parameters


def _shape(dims: list[Any]) -> tuple[int, ...]:
    for dim in dims:
        if type(dim) is not int or not 0 <= dim < 2**64:
            wrong_type("Unable to parse 'shape'", "unsigned-integer")
    return tuple(dims)


def _location(parameters: dict[str, Any]) -> TensorLocation | None:
    """Return where a tensor lies, None where it is not in shared memory. Numbers are checked even without a region."""
    if not parameters:
        return None
    region = typed(parameters.get("shared_memory_region", ""), str, "Unable to parse 'shared_memory_region'")
    offset = unsigned(parameters.get("shared_memory_offset", 0), "Unable to parse 'shared_memory_offset'")
    size = unsigned(parameters.get("shared_memory_byte_size", 0), "Unable to parse 'shared_memory_byte_size'")
    return TensorLocation(region, offset, size) if "shared_memory_region" in parameters else None


def _read_outputs(
    document: dict[str, Any], request: InferRequest, binary_default: bool, locations: TensorLocations | None
) -> OutputEncoding:
    if document.get("outputs") is None:
        return OutputEncoding(binary_default, locations=locations)
    names: dict[str, None] = {}
    binary: list[str] = []
    classes: dict[str, int] = {}
    for item in member(document, "outputs", list, "Unable to parse 'outputs'"):
        parameters = item.get("parameters") if type(item) is dict else None
        parameters = parameters if type(parameters) is dict else {}
        name = _output_name(item, parameters)
        if name in names:
            raise invalid(f"{request.log_prefix}output '{name}' already exists in request")
        names[name] = None
        if "classification" in parameters:
            count = unsigned(parameters["classification"], "Unable to set 'classification'")
            if count:
                classes[name] = count
        location = _location(parameters)
        if location is not None:
            locations = locations or TensorLocations()
            locations.outputs[name] = location
        elif "binary_data" in parameters and typed(parameters["binary_data"], bool, "Unable to parse 'binary_data'"):
            binary.append(name)
    request.requested_outputs = tuple(names)
    return OutputEncoding(binary_default, frozenset(names), frozenset(binary), classes, locations)


def _output_name(item: Any, parameters: dict[str, Any]) -> str:
    if "shared_memory_region" in parameters:
        if "classification" in parameters:
            raise invalid("Output can't set both 'shared_memory_region' and 'classification'")
        if typed(parameters.get("binary_data", False), bool, "Unable to set 'binary_data'"):
            raise invalid("Output can't set both 'shared_memory_region' and 'binary_data'")
    return str(member(item, "name", str, "Unable to parse 'name'"))
