"""`triton_python_backend_utils` by itself: tensors, data types and the surface users rely on."""

from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack

from argosy_runtime.backends.python import pb_utils
from argosy_runtime.backends.python.pb_utils import tensor
from argosy_runtime.backends.python.pb_utils.sender import InferenceResponseSender
from argosy_runtime.messages import Array

SURFACE = """
InferenceRequest InferenceResponse InferenceTrace Logger MetricFamily ModelConfig PreferredMemory Tensor
TritonError TritonModelException TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
TRITONSERVER_REQUEST_RELEASE_ALL TRITONSERVER_REQUEST_RELEASE_RESCHEDULE
TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITON_STRING_TO_NUMPY deserialize_bytes_tensor
get_input_config_by_name get_input_tensor_by_name get_model_dir get_output_config_by_name
get_output_tensor_by_name is_model_ready load_model numpy_to_triton_type serialize_byte_tensor
triton_string_to_numpy triton_to_numpy_type unload_model using_decoupled_model_transaction_policy
"""


def test_the_surface_is_tritons() -> None:
    assert set(SURFACE.split()) <= set(pb_utils.__all__)
    assert all(hasattr(pb_utils, name) for name in pb_utils.__all__)
    assert (
        pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
        pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
        pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
        pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL,
        pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    ) == (1, 2, 1, 1, 2)
    assert pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0).preferred_device_id == 0


@pytest.mark.parametrize(
    "number", [number for number in range(1, 15) if pb_utils.triton_to_numpy_type(number) is not None]
)
def test_types_go_there_and_back(number: int) -> None:
    assert pb_utils.numpy_to_triton_type(pb_utils.triton_to_numpy_type(number)) == number


def test_types_by_name() -> None:
    assert pb_utils.triton_string_to_numpy("TYPE_STRING") is np.object_
    assert pb_utils.triton_string_to_numpy("TYPE_BF16") is ml_dtypes.bfloat16
    assert pb_utils.numpy_to_triton_type(np.bytes_) == 13
    assert pb_utils.numpy_to_triton_type(np.complex64) is None
    assert pb_utils.triton_to_numpy_type(0) is None
    with pytest.raises(KeyError):
        pb_utils.triton_string_to_numpy("TYPE_NO")


@pytest.mark.parametrize(
    "elements", [[b"", b"\x00a\x00", "é".encode()], [b"x"] * 3, []], ids=["zeros", "equal", "none"]
)
def test_bytes_go_there_and_back(elements: list[bytes]) -> None:
    array = np.array(elements, dtype=np.object_)
    encoded = pb_utils.serialize_byte_tensor(array)
    assert pb_utils.deserialize_bytes_tensor(bytes(encoded or b"")).tolist() == elements


def test_only_bytes_serialize() -> None:
    assert pb_utils.serialize_byte_tensor(np.ones(2)) is None
    assert pb_utils.serialize_byte_tensor(np.array([["é", 1]], np.object_)) == b"\2\0\0\0\xc3\xa9\1\0\0\0" + b"1"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.array([[True, False]]),
        np.array(3.5, np.float16),
        np.arange(3).astype(ml_dtypes.bfloat16),
        np.zeros((0, 4), np.uint8),
    ],
    ids=lambda array: str(array.dtype),
)
def test_dlpack_shares_what_numpy_and_torch_hold(array: Array) -> None:
    original = pb_utils.Tensor("t", array)
    seen = from_dlpack(original)
    assert tuple(seen.shape) == array.shape
    for handed in (seen, seen.__dlpack__()):
        if array.dtype == ml_dtypes.bfloat16 and handed is not seen:
            continue  # numpy cannot read a bare bfloat16 capsule
        back = pb_utils.Tensor.from_dlpack("t", handed)
        np.testing.assert_array_equal(back.as_numpy().astype(np.float64), array.astype(np.float64))
        assert back.triton_dtype() == original.triton_dtype()
    assert original.is_cpu()
    assert original.__dlpack_device__() == (1, 0)


def test_a_read_only_input_can_still_be_exported() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    assert from_dlpack(pb_utils.Tensor("t", array).to_dlpack()).tolist() == [0, 1, 2]


def test_strings_have_no_dlpack() -> None:
    with pytest.raises(pb_utils.TritonModelException, match=r"DLPack does not have support for string tensors\."):
        pb_utils.Tensor("t", np.array([b"x"], np.object_)).to_dlpack()


def test_a_tensor_keeps_its_shape_and_becomes_contiguous() -> None:
    original = pb_utils.Tensor("t", np.arange(6).reshape(2, 3).T)
    assert original.shape() == [3, 2]
    assert original.as_numpy().flags.c_contiguous


def call(**changed: Any) -> pb_utils.InferenceRequest:
    return pb_utils.InferenceRequest(**{"model_name": "m", "inputs": [], "requested_output_names": [], **changed})


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: pb_utils.Tensor("", np.ones(1)), "Tensor name cannot be an empty string."),
        (lambda: pb_utils.Tensor.from_dlpack("", torch.ones(1)), "Tensor name cannot be an empty string."),
        (lambda: pb_utils.Tensor("t", np.array(["text"])), "NumPy dtype is not supported. Tensor 't'"),
        (lambda: pb_utils.Tensor.from_dlpack("t", [1]), "Tensor must be a DLPack capsule"),
        (
            lambda: call(inputs=[None], model_name="o"),
            "and model name 'o' should not be",
        ),
        (lambda: call(requested_output_names=[""]), "Requested output name for request"),
        (lambda: call(correlation_id=1.5), "Correlation ID must be integer or string"),
        (lambda: call(parameters={"a": []}), "Expect parameters values to have type"),
        (lambda: pb_utils.InferenceResponse(parameters={1: "a"}), "Expect parameters keys to have type str"),
        (lambda: call().get_response_sender(), "has a response sender"),
    ],
)
def test_misuse_is_named(make: Any, expected: str) -> None:
    with pytest.raises(pb_utils.TritonModelException, match=expected):
        make()


def test_a_call_takes_what_tritons_binding_takes() -> None:
    request = pb_utils.InferenceRequest(
        model_name=np.array([b"echo"], np.object_)[0],
        requested_output_names=[b"Y", np.str_("Z")],
        request_id=b"7",
        timeout=np.int64(10),
        model_version=np.int32(2),
        inputs=[pb_utils.Tensor(b"X", np.ones(1, np.float32))],
    )
    sent = request._outgoing()
    assert (sent.model_name, sent.model_version, sent.id, sent.timeout_us) == ("echo", "2", "7", 10)
    assert (sent.requested_outputs, list(sent.inputs)) == (("Y", "Z"), ["X"])
    assert {type(text) for text in (sent.model_name, sent.id, *sent.requested_outputs, *sent.inputs)} == {str}


@pytest.mark.parametrize("number", [True, np.bool_(True), np.uint8(1), np.float32(1.5), Decimal(1), torch.tensor(1)])
def test_a_number_is_whatever_tritons_binding_makes_an_integer_of(number: Any) -> None:
    request = call(flags=number)
    assert (request.flags(), type(request.flags())) == (1, int)
    sender = InferenceResponseSender(channel := Mock())
    sender.send(flags=number)
    channel.deliver.assert_called_once_with(None, True)
    request.set_release_flags(number)
    assert not request.is_rescheduled


class Row:
    """A sequence by its elements alone."""

    def __getitem__(self, index: int) -> pb_utils.Tensor:
        return [pb_utils.Tensor("a", np.ones(1))][index]


def test_tensors_are_in_any_sequence() -> None:
    assert [item.name() for item in pb_utils.InferenceResponse(Row()).output_tensors()] == ["a"]
    assert [item.name() for item in call(inputs=Row()).inputs()] == ["a"]


@pytest.mark.parametrize("decoupled", [np.bool_(False), 0])
def test_a_call_takes_any_truth_for_decoupled(decoupled: Any) -> None:
    context = Mock(serving=True)
    request = call()
    request._made_by = context
    context.host.call.return_value = iter(())
    request.exec(decoupled=decoupled)
    assert context.host.call.call_args.args[0].decoupled is False


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: call(model_name=None), "model_name must be str, not NoneType"),
        (lambda: call(model_name=b"\xff"), "model_name must be UTF-8"),
        (lambda: call(request_id=7), "request_id must be str, not int"),
        (lambda: call(requested_output_names="Y"), "must be a list of str, not str"),
        (lambda: call(requested_output_names=[1]), "an element of requested_output_names must be"),
        (lambda: call(timeout=np.float64(1)), r"timeout must be int, not numpy\.float64"),
        (lambda: call(flags=1.0), "flags must be int, not float"),
        (lambda: call(flags=np.float32("nan")), r"flags must be int, not numpy\.float32"),
        (lambda: call(flags=np.float32("inf")), r"flags must be int, not numpy\.float32"),
        (lambda: call(flags=1j), "flags must be int, not complex"),
        (lambda: call(flags=None), "flags must be int, not NoneType"),
        (lambda: pb_utils.InferenceResponse(7), "output_tensors must be a list, not int"),
        (lambda: call(timeout=-1), "timeout must be from 0 to 18446744073709551615, not -1"),
        (lambda: call(model_version="1"), "model_version must be int, not str"),
        (lambda: call(flags=2**32), "flags must be from 0"),
        (lambda: call(correlation_id=2**64), "correlation_id must be from 0"),
        (lambda: call(inputs=[np.ones(1)]), "an element of inputs must be Tensor, not ndarray"),
        (lambda: pb_utils.Tensor(3, np.ones(1)), "name must be str, not int"),
        (lambda: pb_utils.load_model(3), "model_name must be str, not int"),
        (lambda: pb_utils.load_model("m", files={"file:1/a": 3}), r"files\['file:1/a'\] must be bytes, not int"),
        (lambda: pb_utils.unload_model(None), "model_name must be str, not NoneType"),
        (lambda: pb_utils.is_model_ready("m", 1), "model_version must be str, not int"),
        (lambda: pb_utils.Logger.log_info(3), "message must be str, not int"),
    ],
)
def test_an_argument_of_a_wrong_type_is_an_error_of_that_call(make: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        make()


def test_strings_reach_the_server_as_bytes() -> None:
    original = pb_utils.Tensor("t", np.array([["é", b"\xff", 3]], np.object_))
    sent = tensor.to_message(original)
    assert (sent.datatype, sent.array.tolist()) == ("BYTES", [["é".encode(), b"\xff", b"3"]])
    fixed = tensor.to_message(pb_utils.Tensor("t", np.array([b"ab", b"c"])))
    assert (fixed.datatype, fixed.array.dtype, fixed.array.tolist()) == ("BYTES", np.object_, [b"ab", b"c"])


def test_an_error_has_tritons_code() -> None:
    error = pb_utils.TritonError("m", pb_utils.TritonError.CANCELLED)
    assert (error.message(), error.code(), pb_utils.TritonError("m").code()) == ("m", 7, 1)


def test_lookups_by_name() -> None:
    config = {"input": [{"name": "A"}], "output": [], "model_transaction_policy": {"decoupled": True}}
    assert pb_utils.get_input_config_by_name(config, "A") == {"name": "A"}
    assert pb_utils.get_output_config_by_name(config, "A") is None
    assert pb_utils.using_decoupled_model_transaction_policy(config)
    assert not pb_utils.using_decoupled_model_transaction_policy({})
    response = pb_utils.InferenceResponse([pb_utils.Tensor("B", np.ones(1))])
    assert pb_utils.get_output_tensor_by_name(response, "C") is None
    result = pb_utils.get_output_tensor_by_name(response, "B")
    assert result is not None
    assert result.name() == "B"
