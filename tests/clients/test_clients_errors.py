"""A wrong request raises the client's own exception, with a message that names what is wrong."""

import numpy as np
import numpy.typing as npt
import pytest
from tests.clients.four import FourClient
from tritonclient.utils import InferenceServerException

ROW = np.arange(16, dtype=np.int32).reshape(1, 16)


def _status(http: str, grpc: str, client: FourClient) -> str:
    return f"StatusCode.{grpc}" if client.is_grpc else http


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (("FP32", ROW), ("INT32", ROW), "data-type is 'FP32', but.* expects 'INT32'"),
        (("INT32", ROW[:, :4]), ("INT32", ROW), r"unexpected shape for input 'INPUT0'.*\[-1,16\].*\[1,4\]"),
        (("INT32", ROW.repeat(9, 0)), ("INT32", ROW.repeat(9, 0)), "batch-size must be <= 8"),
        (("INT32", ROW.repeat(2, 0)), ("INT32", ROW), "input 'INPUT0' batch size does not match"),
    ],
)
def test_wrong_tensors(
    client: FourClient, left: tuple[str, npt.NDArray[np.int32]], right: tuple[str, npt.NDArray[np.int32]], message: str
) -> None:
    with pytest.raises(InferenceServerException, match=message) as caught:
        client.infer("add_sub", client.tensors({"INPUT0": left, "INPUT1": right}))
    assert caught.value.status() == _status("400", "INVALID_ARGUMENT", client)


def test_a_missing_input(client: FourClient) -> None:
    with pytest.raises(
        InferenceServerException, match="expected 2 inputs but got 1 inputs for model 'add_sub'"
    ) as caught:
        client.infer("add_sub", [client.tensor("INPUT0", "INT32", ROW)])
    assert caught.value.status() == _status("400", "INVALID_ARGUMENT", client)


def test_an_unknown_input(client: FourClient) -> None:
    arrays = {"INPUT0": ("INT32", ROW), "OTHER": ("INT32", ROW)}
    with pytest.raises(InferenceServerException, match=r"unexpected inference input 'OTHER'|OTHER"):
        client.infer("add_sub", client.tensors(arrays))


def test_an_unknown_output(client: FourClient) -> None:
    with pytest.raises(InferenceServerException, match="unexpected inference output 'OTHER' for model 'add_sub'"):
        client.add_sub(ROW, ROW, outputs=[client.output("OTHER")])


def test_an_unknown_model(client: FourClient) -> None:
    with pytest.raises(InferenceServerException, match="unknown model: 'no_such_model' is not found") as caught:
        client.infer("no_such_model", [client.tensor("X", "INT32", [1])])
    assert caught.value.status() == _status("404", "NOT_FOUND", client)
    with pytest.raises(InferenceServerException, match="no_such_model"):
        client.get_model_metadata("no_such_model")
    with pytest.raises(InferenceServerException, match="no_such_model"):
        client.get_model_config("no_such_model")


def test_an_unknown_version(client: FourClient) -> None:
    with pytest.raises(InferenceServerException, match="'versioned' version 2 is not found"):
        client.infer("versioned", [client.tensor("IN", "FP32", [0.0])], model_version="2")


@pytest.mark.parametrize(
    ("how", "message", "http", "grpc"),
    [
        (b"error", "an error of the model's", "500", "INTERNAL"),
        (b"raise", "the model failed on purpose", "500", "INTERNAL"),
        (b"NOT_FOUND", "this is NOT_FOUND", "404", "NOT_FOUND"),
        (b"UNAVAILABLE", "this is UNAVAILABLE", "503", "UNAVAILABLE"),
        (b"INVALID_ARG", "this is INVALID_ARG", "400", "INVALID_ARGUMENT"),
    ],
)
def test_errors_of_the_model(client: FourClient, how: bytes, message: str, http: str, grpc: str) -> None:
    with pytest.raises(InferenceServerException, match=message) as caught:
        client.infer("failing", [client.tensor("HOW", "BYTES", [how])])
    assert caught.value.status() == _status(http, grpc, client)


def test_a_decoupled_model_has_no_plain_infer(client: FourClient) -> None:
    with pytest.raises(
        InferenceServerException, match="doesn't support models with decoupled transaction policy"
    ) as caught:
        client.infer("repeat", [client.tensor("IN", "INT32", [1, 2])])
    assert caught.value.status() == _status("501", "UNIMPLEMENTED", client)


def test_the_connection_goes_on_after_an_error(client: FourClient) -> None:
    with pytest.raises(InferenceServerException):
        client.infer("failing", [client.tensor("HOW", "BYTES", [b"raise"])])
    np.testing.assert_array_equal(client.add_sub(ROW, ROW).as_numpy("OUTPUT0"), ROW * 2)


@pytest.mark.parametrize("client", ["grpc", "grpc.aio"], indirect=True)
def test_a_client_that_waits_no_longer(client: FourClient) -> None:
    with pytest.raises(InferenceServerException, match="Deadline Exceeded") as caught:
        client.infer("slow", [client.tensor("IN", "INT32", [700])], client_timeout=0.1)
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    assert client.infer("slow", [client.tensor("IN", "INT32", [0])]).as_numpy("OUT").tolist() == [0]
