"""gRPC messages: round trips of raw and typed contents, parameters, refusals."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ErrorKind, ServingError, internal
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.protocol.grpc import request as grpc_request
from argosy_runtime.protocol.grpc import response as grpc_response
from argosy_runtime.protocol.grpc.request import canonical_version
from argosy_runtime.protocol.model_view import ModelView
from argosy_runtime.protocol.tensors import DTYPES

FIELDS = {
    "bool_contents": ("BOOL",),
    "int_contents": ("INT8", "INT16", "INT32"),
    "int64_contents": ("INT64",),
    "uint_contents": ("UINT8", "UINT16", "UINT32"),
    "uint64_contents": ("UINT64",),
    "fp32_contents": ("FP32",),
    "fp64_contents": ("FP64",),
}


def no_model() -> ModelView:
    raise AssertionError("the model was asked for")


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    datatype = draw(st.sampled_from(tuple(DTYPES)))
    count = draw(st.integers(0, 4))
    if datatype == "BYTES":
        flat = np.empty(count, np.object_)
        flat[:] = draw(st.lists(st.binary(max_size=4), min_size=count, max_size=count))
        return Tensor("T", datatype, flat)
    size = count * DTYPES[datatype].itemsize
    raw = draw(st.binary(min_size=size, max_size=size))
    raw = bytes(byte & 1 for byte in raw) if datatype == "BOOL" else raw
    return Tensor("T", datatype, np.frombuffer(raw, DTYPES[datatype]) if raw else np.empty(0, DTYPES[datatype]))


@given(st.lists(tensors(), max_size=3))
def test_raw_round_trip(parts: list[Tensor]) -> None:
    outputs = [tensor.renamed(f"T{index}") for index, tensor in enumerate(parts)]
    response = grpc_response.encode(InferResponse("m", "1", "i", outputs), {}, no_model)
    request = pb.ModelInferRequest(model_name="m", id="i", raw_input_contents=response.raw_output_contents)
    for output in response.outputs:
        request.inputs.add(name=output.name, datatype=output.datatype, shape=output.shape)
    decoded, _ = grpc_request.decode(pb.ModelInferRequest.FromString(request.SerializeToString()))
    for tensor in outputs:
        got = decoded.inputs[tensor.name]
        assert (got.datatype, got.shape, bytes(got.data)) == (tensor.datatype, tensor.shape, bytes(tensor.data))


@pytest.mark.parametrize(
    ("field", "datatype"), [(field, datatype) for field, types in FIELDS.items() for datatype in types]
)
def test_typed_contents(field: str, datatype: str) -> None:
    request = pb.ModelInferRequest(model_name="m")
    item = request.inputs.add(name="T", datatype=datatype, shape=[2, 1])
    getattr(item.contents, field).extend([1, 0])
    array = grpc_request.decode(request)[0].inputs["T"].array
    assert array.dtype == DTYPES[datatype]
    assert array.tolist() == [[1], [0]]


def test_bytes_contents_and_empty_contents() -> None:
    request = pb.ModelInferRequest(model_name="m")
    request.inputs.add(name="T", datatype="BYTES", shape=[2]).contents.bytes_contents.extend([b"a", b"\xff"])
    request.inputs.add(name="E", datatype="FP32", shape=[0]).contents.SetInParent()
    inputs = grpc_request.decode(request)[0].inputs
    assert inputs["T"].array.tolist() == [b"a", b"\xff"]
    assert inputs["E"].shape == (0,)


def test_parameters() -> None:
    request = pb.ModelInferRequest(model_name="m", model_version="2", id="i")
    request.parameters["sequence_id"].int64_param = -1
    request.parameters["sequence_start"].bool_param = True
    request.parameters["priority"].uint64_param = 2**64 - 1
    request.parameters["timeout"].int64_param = 5
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    for name, field, value in (("a", "string_param", "x"), ("b", "double_param", 0.5), ("c", "int64_param", -3)):
        setattr(request.parameters[name], field, value)
    decoded, options = grpc_request.decode(request)
    assert (decoded.model_version, decoded.id, decoded.sequence_id) == ("2", "i", 2**64 - 1)
    assert (decoded.sequence_start, decoded.priority, decoded.timeout_us) == (True, 2**64 - 1, 5)
    assert decoded.parameters == {"a": "x", "b": 0.5, "c": -3}
    assert options.wants_empty_final


def refused(build: Any) -> ServingError:
    request = pb.ModelInferRequest(model_name="m")
    build(request)
    with pytest.raises(ServingError) as raised:
        grpc_request.decode(request)
    return raised.value


def with_parameter(name: str, field: str, value: Any) -> Any:
    return lambda request: setattr(request.parameters[name], field, value)


def with_input(datatype: str = "FP32", raw: bool = False, twice: bool = False, **contents: Any) -> Any:
    def build(request: pb.ModelInferRequest) -> None:
        for _ in range(1 + twice):
            item = request.inputs.add(name="T", datatype=datatype, shape=[1])
            for field, values in contents.items():
                getattr(item.contents, field).extend(values)
        if raw:
            request.raw_input_contents.append(b"\0\0\0\0")

    return build


def endless(request: pb.ModelInferRequest) -> None:
    request.inputs.add(name="T", datatype="FP32", shape=[1, 0, 2**41])
    request.raw_input_contents.append(b"")


def with_location(explicit: bool = False, **parameters: Any) -> Any:
    def build(request: pb.ModelInferRequest) -> None:
        item = request.inputs.add(name="T", datatype="FP32", shape=[1])
        if explicit:
            item.contents.fp32_contents.append(1)
        for name, value in parameters.items():
            parameter = item.parameters[f"shared_memory_{name}"]
            setattr(parameter, "int64_param" if isinstance(value, int) else "string_param", value)

    return build


def with_output(**parameters: Any) -> Any:
    def build(request: pb.ModelInferRequest) -> None:
        output = request.outputs.add(name="O")
        for name, value in parameters.items():
            setattr(output.parameters[name], "int64_param" if isinstance(value, int) else "string_param", value)

    return build


EXPLICIT = "unexpected explicit tensor data for input tensor 'T' for model 'm'"


@pytest.mark.parametrize(
    ("build", "reported"),
    [
        (with_parameter("sequence_id", "bool_param", True), "invalid value type for 'sequence_id' parameter, expected int64_param or string_param."),
        (with_parameter("sequence_end", "int64_param", 1), "invalid value type for 'sequence_end' parameter, expected bool_param."),
        (with_parameter("priority", "int64_param", -1), "invalid value for 'priority', expected value >= 0."),
        (with_parameter("timeout", "string_param", "1"), "invalid value type for 'timeout' parameter, expected int64_param."),
        (with_parameter("mine", "uint64_param", 1), "invalid value type for 'mine' parameter, expected int64_param, bool_param, or string_param."),
        (with_parameter("triton_x", "bool_param", True), "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response"),
        (with_parameter("triton_enable_empty_final_response", "int64_param", 1), "invalid value type for 'triton_enable_empty_final_response' parameter, expected bool_param."),
        (with_input(), "unable to find data for input tensor 'T' for model 'm' in request."),
        (with_input(raw=True, fp32_contents=[1]), "contents field must not be specified when using raw_input_contents for 'T' for model 'm'"),
        (with_input(fp32_contents=[1], fp64_contents=[1]), f"{EXPLICIT}, binary data was already supplied."),
        (with_input(fp64_contents=[1]), f"{EXPLICIT} of type 'FP64', expected datatype 'FP32'"),
        (with_input(fp32_contents=[1, 2]), "[request id: <id_unknown>] input byte size mismatch for input 'T' for model 'm'. Expected 4, got 8"),
        (with_input(raw=True, datatype="FP64"), "[request id: <id_unknown>] input byte size mismatch for input 'T' for model 'm'. Expected 8, got 4"),
        (with_input(fp32_contents=[1], twice=True), "[request id: <id_unknown>] input 'T' already exists in request"),
        (endless, "invalid shape for input 'T': shape [1,0,2199023255552] causes total element count to exceed maximum size of 1099511627776"),
        (with_location(region=1, byte_size=4), "invalid value type for 'shared_memory_region' parameter for tensor 'T', expected string_param."),
        (with_location(region="r", byte_size="4"), "invalid value type for 'shared_memory_byte_size' parameter for tensor 'T', expected int64_param."),
        (with_location(region="r", offset="4", byte_size=4), "invalid value type for 'shared_memory_offset' parameter for tensor 'T', expected int64_param."),
        (with_location(offset=4), "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'T'"),
        (with_location(byte_size=4), "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'T'"),
        (with_location(region="r"), "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'T'"),
        (with_location(explicit=True, region="r", byte_size=4), "unexpected 'content' provided when using shared memory for input tensor 'T' for model 'm'"),
        (with_output(classification="1"), "invalid value type for 'classification' parameter, expected int64_param"),
        (with_output(classification=0), "invalid value for 'classification' parameter, expected >= 0"),
        (with_output(classification=1, shared_memory_region="r", shared_memory_byte_size=4), "output can't set both 'shared_memory_region' and 'classification'"),
    ],
)  # fmt: skip
def test_refusals(build: Any, reported: str) -> None:
    assert refused(build).message == reported


def test_response_parameters_keep_their_types() -> None:
    response = InferResponse("m", "1", parameters={"b": True, "i": 2, "d": 0.5, "s": "x"})
    parameters = grpc_response.encode(response, {}, no_model).parameters
    kinds = {name: parameter.WhichOneof("parameter_choice") for name, parameter in parameters.items()}
    assert kinds == {"b": "bool_param", "i": "int64_param", "d": "double_param", "s": "string_param"}


def test_stream_responses_carry_their_final_flag() -> None:
    request = InferRequest("m", {}, "2", "i")
    error = InferResponse("m", "2", "i", error=internal("broke"), final=False)
    message = grpc_response.encode_stream(request, error, {}, no_model)
    assert message.error_message == "broke"
    assert (message.infer_response.id, message.infer_response.model_version) == ("i", "2")
    assert not message.infer_response.parameters["triton_final_response"].bool_param
    empty = grpc_response.encode_stream(request, InferResponse("m", "2", "i"), {}, no_model)
    assert empty.infer_response.parameters["triton_final_response"].bool_param
    assert empty.error_message == ""


def test_versions() -> None:
    assert [canonical_version(version) for version in ("", "0", "007", "12")] == ["", "0", "7", "12"]
    for version in ("x", "-1", "1.5"):
        with pytest.raises(ServingError) as raised:
            canonical_version(version)
        assert raised.value.kind is ErrorKind.INVALID_ARG
