"""ModelInferRequest as an `InferRequest`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.modelconfig.versions import number_of
from argosy_runtime.protocol.tensors import DTYPES, InputBytes, datatype_name, element_count
from argosy_runtime.shared_memory.checks import MAX_NUMBER
from argosy_runtime.shared_memory.locations import TensorLocation, TensorLocations
from argosy_runtime.tensors import raw_tensor

from . import parameters as grpc_parameters

ENDPOINT = "ModelInfer RPC"
"""The name of this endpoint in messages."""
UNPARSABLE = "Unable to parse request"
"""The message for bytes that are no message of the method, as Triton's gRPC library has it."""


@dataclass(slots=True)
class GrpcOptions:
    """The options of a response: `classes` maps an output to the number of requested classes.

    `locations` is None where no tensor of the request lies in shared memory.
    """

    wants_empty_final: bool = False
    classes: dict[str, int] = field(default_factory=dict)
    locations: TensorLocations | None = None


# The datatypes that each field of InferTensorContents may hold, its own type first.
_CONTENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("bool_contents", ("BOOL",)),
    ("int_contents", ("INT32", "INT8", "INT16")),
    ("int64_contents", ("INT64",)),
    ("uint_contents", ("UINT32", "UINT8", "UINT16")),
    ("uint64_contents", ("UINT64",)),
    ("fp32_contents", ("FP32",)),
    ("fp64_contents", ("FP64",)),
    ("bytes_contents", ("BYTES",)),
)


def decode(message: pb.ModelInferRequest) -> tuple[InferRequest, GrpcOptions]:
    """Decode a request. Arrays of raw contents are read-only views of the message's bytes.

    Inputs in shared memory are empty, and to be read by their locations.
    """
    request = InferRequest(message.model_name, {}, message.model_version, message.id)
    options = GrpcOptions()
    if message.parameters:
        options.wants_empty_final = grpc_parameters.apply(message.parameters, request)
    read = InputBytes(request.model_name, request.log_prefix)
    raw = message.raw_input_contents
    taken = 0
    for item in message.inputs:
        name, datatype, shape = item.name, item.datatype, tuple(item.shape)
        if name in request.inputs:
            raise invalid(f"{request.log_prefix}input '{name}' already exists in request")
        location = _location(item) if item.parameters else None
        if location is not None:
            if item.HasField("contents"):
                raise invalid(
                    f"unexpected 'content' provided when using shared memory for input tensor '{name}' for model "
                    f"'{request.model_name}'"
                )
            _locations(options).inputs[name] = location
            request.inputs[name] = raw_tensor(name, datatype, shape, b"")
            continue
        if item.HasField("contents"):
            array = _contents(item, request.model_name, shape, len(raw) > 0, read)
        elif taken < len(raw):
            array = read.array(name, datatype, shape, raw[taken])
            taken += 1
        else:
            raise invalid(f"unable to find data for input tensor '{name}' for model '{request.model_name}' in request.")
        request.inputs[name] = Tensor(name, datatype, array)
    if message.outputs:
        _read_outputs(message, request, options)
    read.check(request)
    return request, options


def _contents(item: Any, model: str, shape: tuple[int, ...], has_raw: bool, read: InputBytes) -> Array:
    if has_raw:
        raise invalid(
            f"contents field must not be specified when using raw_input_contents for '{item.name}' for model '{model}'"
        )
    filled = [(name, types) for name, types in _CONTENTS if getattr(item.contents, name)]
    if not filled:
        return read.array(item.name, item.datatype, shape, b"")
    (field_name, types), *others = filled
    start = f"unexpected explicit tensor data for input tensor '{item.name}' for model '{model}'"
    if others:
        raise invalid(f"{start}, binary data was already supplied.")
    if item.datatype not in types:
        raise invalid(f"{start} of type '{types[0]}', expected datatype '{datatype_name(item.datatype)}'")
    values = getattr(item.contents, field_name)
    if item.datatype == "BYTES":
        return read.strings(item.name, shape, list(values))
    dtype = DTYPES[item.datatype]
    wide = np.array(values, DTYPES[types[0]])
    if wide.size != element_count(item.name, shape):
        return read.array(item.name, item.datatype, shape, wide.astype(dtype).tobytes())
    return wide.astype(dtype, copy=False).reshape(shape)


_REGION, _OFFSET, _BYTE_SIZE = "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"


def _location(tensor: Any) -> TensorLocation | None:
    """Return where an input or output lies, None where it is not in shared memory. Raises INVALID_ARG."""
    parameters = tensor.parameters
    if _REGION not in parameters:
        for name in (_OFFSET, _BYTE_SIZE):
            if name in parameters:
                raise invalid(f"'{name}' can not be specified without '{_REGION}' parameter for tensor '{tensor.name}'")
        return None
    region = _typed_parameter(tensor, _REGION, "string_param")
    offset = _typed_parameter(tensor, _OFFSET, "int64_param") if _OFFSET in parameters else 0
    if _BYTE_SIZE not in parameters:
        raise invalid(f"'{_BYTE_SIZE}' must be specified along with '{_REGION}' parameter for tensor '{tensor.name}'")
    size = _typed_parameter(tensor, _BYTE_SIZE, "int64_param")
    # Of a negative number the same 64 bits.
    return TensorLocation(region, offset & MAX_NUMBER, size & MAX_NUMBER)


def _typed_parameter(tensor: Any, name: str, kind: str) -> Any:
    if tensor.parameters[name].WhichOneof("parameter_choice") != kind:
        raise invalid(f"invalid value type for '{name}' parameter for tensor '{tensor.name}', expected {kind}.")
    return getattr(tensor.parameters[name], kind)


def _locations(options: GrpcOptions) -> TensorLocations:
    if options.locations is None:
        options.locations = TensorLocations()
    return options.locations


def _read_outputs(message: pb.ModelInferRequest, request: InferRequest, options: GrpcOptions) -> None:
    names: dict[str, None] = {}
    for output in message.outputs:
        if output.name in names:
            raise invalid(f"{request.log_prefix}output '{output.name}' already exists in request")
        names[output.name] = None
        if not output.parameters:
            continue
        location = _location(output)
        if "classification" in output.parameters:
            count = _class_count(output.parameters["classification"])
            if location is not None:
                raise invalid("output can't set both 'shared_memory_region' and 'classification'")
            options.classes[output.name] = count
        elif location is not None:
            _locations(options).outputs[output.name] = location
    request.requested_outputs = tuple(names)


def _class_count(parameter: pb.InferParameter) -> int:
    if parameter.WhichOneof("parameter_choice") != "int64_param":
        raise invalid("invalid value type for 'classification' parameter, expected int64_param")
    if parameter.int64_param <= 0:
        raise invalid("invalid value for 'classification' parameter, expected >= 0")
    return int(parameter.int64_param)


def canonical_version(version: str) -> str:
    """Return a version without leading zeros; "" stays, and leaves the choice to the version policy.

    Raises INVALID_ARG where it is no 64-bit number, or a negative one.
    """
    if not version:
        return ""
    number = number_of(version)
    if number is None:
        raise invalid(
            f"failed to get model version from specified version string '{version}' (details: stol), version "
            "should be an integral value > 0"
        )
    if number < 0:
        raise invalid(f"invalid model version specified '{version}' , version should be an integral value > 0")
    return str(number)
