"""Inference by regions over both protocols: inputs, outputs, what is refused, and how long a region stays."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import contextlib
import json
import queue
import threading
import urllib.error
import urllib.request
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc
from tests.memory_objects import PAGE, MemoryObject
from tests.runtime.frontends.conftest import Running, client_regions
from tests.runtime.frontends.shared_memory.conftest import SIZE, Client
from tests.waiting import wait
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

from argosy_runtime.shared_memory.regions import RegionKind

NUMBERS = np.array([[1.5, -2.0]], np.float32)
STRINGS = np.array([b"\xff\x00", b""], np.object_)


def test_tensors_come_from_a_region_and_go_to_one(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, PAGE, offset=PAGE)
    made.write(NUMBERS.tobytes(), PAGE + 16)
    inputs = [client.input("IN", "FP32", [1, 2], 8, offset=16)]
    result = client.inner.infer("echo", inputs, outputs=[client.output("OUT", 64, offset=32)], request_id="id")
    assert made.read(PAGE + 32, 16) == NUMBERS.tobytes() + bytes(8)
    output = result.get_output("OUT")
    shape = output["shape"] if isinstance(output, dict) else list(output.shape)
    assert shape == [1, 2]
    if isinstance(output, dict):
        assert set(output) == {"name", "datatype", "shape"}
    else:
        assert list(result.get_response().raw_output_contents) == [b""]
        assert not output.parameters


def test_strings_and_numbers_by_regions_and_in_the_message(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    encoded = serialize_byte_tensor(STRINGS).item()
    made.write(encoded)
    numbers = client.api.InferInput("A", [2], "INT32")
    numbers.set_data_from_numpy(np.array([7, 8], np.int32))
    inputs = [client.input("B", "BYTES", [2], len(encoded)), numbers]
    outputs = [client.output("OUT_B", 64, offset=PAGE), client.api.InferRequestedOutput("OUT_A")]
    for _ in range(3):
        made.write(bytes(64), PAGE)
        result = client.inner.infer("any", inputs, outputs=outputs)
        assert result.as_numpy("OUT_A").tolist() == [7, 8]
        assert made.read(PAGE, len(encoded) + 1) == encoded + b"\0"


def test_outputs_alone_in_a_region_while_equal_requests_have_a_template(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    for value in range(4):
        numbers = np.array([[value, value + 1]], np.float32)
        sent = client.api.InferInput("IN", [1, 2], "FP32")
        sent.set_data_from_numpy(numbers)
        client.inner.infer("echo", [sent], outputs=[client.output("OUT", 8)])
        assert made.read(0, 8) == numbers.tobytes()
    client.inner.unregister_system_shared_memory("r")
    with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'r'"):
        client.inner.infer("echo", [sent], outputs=[client.output("OUT", 8)])


def test_equal_requests_have_a_template_and_read_what_is_there_now(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    for round_ in range(4):
        for offset in (0, 64):
            numbers = np.array([[round_, offset]], np.float32)
            made.write(numbers.tobytes(), offset)
            inputs, outputs = [client.input("IN", "FP32", [1, 2], 8, offset)], [client.output("OUT", 8, offset=PAGE)]
            client.inner.infer("echo", inputs, outputs=outputs, request_id=f"{round_}")
            assert made.read(PAGE, 8) == numbers.tobytes()
    made.resize(0)
    for _ in range(2):
        with pytest.raises(InferenceServerException, match="cannot read shared memory region 'r'"):
            client.inner.infer("echo", inputs, outputs=outputs)
    client.inner.unregister_system_shared_memory("r")
    with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'r'"):
        client.inner.infer("echo", inputs, outputs=outputs)


def test_http_requests_with_the_length_of_their_json_have_a_template(made: MemoryObject, running: Running) -> None:
    """Send what NVIDIA's C++ client sends: the header also where no data follows the JSON."""
    running.plane.regions = client_regions(allowed=True)
    running.plane.regions.register_system("r", made.key, 0, SIZE)
    for value in range(4):
        for size in (8, 4):
            numbers = np.array([[value, value + 1]], np.float32)
            made.write(numbers.tobytes())
            located = f'"parameters":{{"shared_memory_region":"r","shared_memory_byte_size":{size}}}'
            inputs = f'[{{"name":"IN","datatype":"FP32","shape":[1,2],{located}}}]'
            body = f'{{"id":"{value}","inputs":{inputs},"parameters":{{"binary_data_output":true}}}}'.encode()
            sent = urllib.request.Request(f"http://127.0.0.1:{running.http}/v2/models/echo/infer", body)
            sent.add_header("Inference-Header-Content-Length", str(len(body)))
            if size == 4:
                with pytest.raises(urllib.error.HTTPError):
                    urllib.request.urlopen(sent, timeout=60)
                continue
            with urllib.request.urlopen(sent, timeout=60) as answer:
                assert answer.read().endswith(numbers.tobytes())


def test_sizes_are_checked_again_and_again(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    for shape, size in (([1, 2], 4), ([1, 0], 8)):
        for _ in range(4):
            with pytest.raises(InferenceServerException, match=f"got {size}"):
                client.inner.infer("echo", [client.input("IN", "FP32", shape, size)])


def test_an_empty_input_in_a_region_and_another_in_the_message(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    for value in range(4):
        numbers = client.api.InferInput("A", [2], "INT32")
        numbers.set_data_from_numpy(np.array([value, 8], np.int32))
        inputs = [client.input("B", "FP32", [0], 0), numbers]
        assert client.inner.infer("any", inputs).as_numpy("OUT_A").tolist() == [value, 8]


def test_an_empty_tensor_takes_no_location(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    made.write(b"untouched")
    inputs = [client.input("IN", "FP32", [0, 2], 0)]
    client.inner.infer("echo", inputs, outputs=[client.output("OUT", 0)])
    assert made.read(0, 9) == b"untouched"


def test_the_model_has_what_was_there_when_the_request_came(
    client: Client, made: MemoryObject, running: Running
) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    made.write(NUMBERS.tobytes())
    inputs, outputs = [client.input("IN", "FP32", [2], 8)], [client.output("OUT", 8, offset=16)]
    thread = threading.Thread(target=client.again().infer, args=("slow", inputs), kwargs={"outputs": outputs})
    thread.start()
    assert running.plane.started.wait(60)
    made.write(b"\xff" * 8)
    running.plane.released.set()
    thread.join(60)
    assert made.read(16, 8) == NUMBERS.tobytes()


def test_a_region_in_use_leaves_with_the_last_request(client: Client, made: MemoryObject, running: Running) -> None:
    for name in ("r", "s"):
        client.inner.register_system_shared_memory(name, made.key, SIZE)
    inputs = [client.input("IN", "FP32", [2], 8)]
    outputs = [client.output("OUT", 8, region="s")]
    other = client.again()
    thread = threading.Thread(target=other.infer, args=("slow", inputs), kwargs={"outputs": outputs})
    thread.start()
    assert running.plane.started.wait(60)
    client.inner.unregister_system_shared_memory()
    assert set(client.regions()) == {"r", "s"}
    client.inner.infer("echo", [client.input("IN", "FP32", [1, 2], 8)])
    assert set(client.regions()) == {"r", "s"}
    running.plane.released.set()
    thread.join(60)
    assert client.regions() == {}
    other.close()


@pytest.mark.parametrize("model", ["echo", "busy", "fails", "none"])
def test_no_region_is_held_by_a_request_that_is_over(
    client: Client, made: MemoryObject, running: Running, model: str
) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    bad = [
        [client.input("IN", "FP32", [1, 2], 8)],
        [client.input("IN", "FP32", [1, 2], 8), client.input("IN2", "FP32", [1, 2], 4)],
        [client.input("IN", "FP32", [1, 2], 8), client.input("IN2", "FP32", [1, 2], 8, region="none")],
    ]
    for inputs in bad:
        with contextlib.suppress(InferenceServerException):
            client.inner.infer(model, inputs, outputs=[client.output("OUT", 4)])
    (region,) = running.plane.regions.status(RegionKind.SYSTEM)
    assert region.users == 0
    assert running.plane.regions._copied == 0


REFUSALS = [
    (("FP32", [2], 8, 0, "none"), (8, 0), "Unable to find shared memory region: 'none'"),
    (("FP32", [2], 8, SIZE, "r"), (8, 0), "Invalid offset for shared memory region: 'r'"),
    (("FP32", [2], 8, SIZE - 4, "r"), (8, 0), "Invalid offset + byte size for shared memory region: 'r'"),
    (
        ("FP32", [2], 4, 0, "r"),
        (8, 0),
        "[request id: <id_unknown>] input byte size mismatch for input 'IN' for model 'slow'. Expected 8, got 4",
    ),
    (
        ("FP32", [2], 0, 0, "r"),
        (8, 0),
        "[request id: <id_unknown>] input byte size mismatch for input 'IN' for model 'slow'. Expected 8, got 0",
    ),
    (
        ("FP99", [2], 8, 0, "r"),
        (8, 0),
        "[request id: <id_unknown>] inference input 'IN' data-type is '<invalid>', but model 'slow' expects 'FP32'",
    ),
    (
        ("BYTES", [1], 8, 0, "r"),
        (8, 0),
        "[request id: <id_unknown>] unexpected number of string elements 2 for inference input 'text' for model 'text', expecting 1",
    ),
    (
        ("BYTES", [1], 3, 0, "r"),
        (8, 0),
        "[request id: <id_unknown>] incomplete string length indicator for inference input 'text' for model 'text', expecting 4 bytes but only 3 bytes available. Please make sure the string length indicator is in one buffer.",
    ),
    (("FP32", [2], 8, 0, "r"), (8, SIZE), "Invalid offset for shared memory region: 'r'"),
    (("FP32", [2], 8, 0, "r"), (SIZE + 1, 0), "Invalid offset + byte size for shared memory region: 'r'"),
]


@pytest.mark.parametrize(("source", "target", "reported"), REFUSALS)
def test_refusals(client: Client, made: MemoryObject, source: Any, target: tuple[int, int], reported: str) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    datatype, shape, size, offset, region = source
    model, name, output = ("text", "text", "OUT_text") if datatype == "BYTES" else ("slow", "IN", "OUT")
    inputs = [client.input(name, datatype, shape, size, offset, region)]
    with pytest.raises(InferenceServerException) as raised:
        client.inner.infer(model, inputs, outputs=[client.output(output, *target)])
    assert raised.value.message() == reported


def test_an_output_that_does_not_fit_its_location_is_an_error_and_not_written(
    client: Client, made: MemoryObject
) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    made.write(NUMBERS.tobytes())
    inputs = [client.input("IN", "FP32", [1, 2], 8)]
    with pytest.raises(InferenceServerException) as raised:
        client.inner.infer("echo", inputs, outputs=[client.output("OUT", 7, offset=64)])
    assert raised.value.message() == (
        "shared memory size specified with the request for output 'OUT' (7 bytes) should be at least 8 bytes to hold the results"
    )
    assert raised.value.status() in ("500", "StatusCode.INTERNAL")
    assert made.read(64, 8) == bytes(8)


def test_memory_that_became_shorter_fails_the_request_and_no_other(client: Client, made: MemoryObject) -> None:
    client.inner.register_system_shared_memory("r", made.key, SIZE)
    first, last = client.input("IN", "FP32", [1, 2], 8), client.input("IN", "FP32", [1, 2], 8, offset=PAGE)
    made.resize(PAGE)
    client.inner.infer("echo", [first], outputs=[client.output("OUT", 8)])
    with pytest.raises(
        InferenceServerException, match="cannot read shared memory region 'r': its memory object is shorter"
    ):
        client.inner.infer("echo", [last])
    with pytest.raises(
        InferenceServerException, match="cannot write shared memory region 'r': its memory object is shorter"
    ):
        client.inner.infer("echo", [first], outputs=[client.output("OUT", 8, offset=PAGE)])
    client.inner.infer("echo", [first], outputs=[client.output("OUT", 8)])


def test_responses_of_a_stream_go_to_the_location(made: MemoryObject, running: Running, stub: Any) -> None:
    stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="r", key=made.key, byte_size=SIZE))
    made.write(np.array([3], np.int32).tobytes())
    sent = tritonclient.grpc.InferInput("IN", [1], "INT32")
    sent.set_shared_memory("r", 4)
    location = tritonclient.grpc.InferRequestedOutput("OUT")
    location.set_shared_memory("r", 4, offset=8)
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{running.grpc}") as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("repeat", [sent], outputs=[location], enable_empty_final_response=True)
        for _ in range(3):
            result, error = answers.get(timeout=60)
            assert error is None
            assert list(result.get_response().raw_output_contents) == [b""]
        result, error = answers.get(timeout=60)
        assert result.get_response().parameters["triton_final_response"].bool_param
        assert made.read(8, 4) == np.array([2], np.int32).tobytes()
        wait(lambda: running.plane.regions.status(RegionKind.SYSTEM)[0].users == 0, 0.01)
        location.set_shared_memory("r", 2, offset=8)
        client.async_stream_infer("repeat", [sent], outputs=[location])
        for _ in range(3):
            result, error = answers.get(timeout=60)
            assert "(2 bytes) should be at least 4 bytes" in str(error)
        client.stop_stream()
    wait(lambda: running.plane.regions.status(RegionKind.SYSTEM)[0].users == 0, 0.01)


UNKNOWN = {
    False: "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'any'. Got input(s) ['B'], but missing required input(s) ['A']. Please provide all required input(s).",
    True: "[request id: <id_unknown>] inference input 'B' data-type is '<invalid>', but model 'any' expects 'BYTES'",
}


@pytest.mark.parametrize("datatype", ["FP99", ""])
@pytest.mark.parametrize("mixed", [False, True])
def test_a_stream_goes_on_after_an_unknown_datatype(
    made: MemoryObject, running: Running, stub: Any, datatype: str, mixed: bool
) -> None:
    stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="r", key=made.key, byte_size=SIZE))
    request = pb.ModelInferRequest(model_name="any")
    if mixed:
        request.inputs.add(name="A", datatype="INT32", shape=[2])
        request.raw_input_contents.append(bytes(8))
    located = request.inputs.add(name="B", datatype=datatype, shape=[2])
    located.parameters["shared_memory_region"].string_param = "r"
    located.parameters["shared_memory_byte_size"].int64_param = 8
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as caught:
            stub.ModelInfer(request, timeout=60)
        assert (caught.value.code(), caught.value.details()) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            UNKNOWN[mixed],
        )
    good = pb.ModelInferRequest(model_name="half", id="good")
    good.inputs.add(name="IN", datatype="FP16", shape=[1])
    good.raw_input_contents.append(bytes(2))
    answers = list(stub.ModelStreamInfer(iter([request, request, good]), timeout=60))
    assert [answer.error_message for answer in answers] == [UNKNOWN[mixed], UNKNOWN[mixed], ""]
    assert answers[-1].infer_response.id == "good"


@pytest.mark.parametrize("datatype", ["FP99", ""])
@pytest.mark.parametrize("mixed", [False, True])
def test_equal_http_requests_of_an_unknown_datatype_are_refused_alike(
    made: MemoryObject, running: Running, datatype: str, mixed: bool
) -> None:
    running.plane.regions = client_regions(allowed=True)
    running.plane.regions.register_system("r", made.key, 0, SIZE)
    located = {"shared_memory_region": "r", "shared_memory_byte_size": 8}
    inputs: list[dict[str, Any]] = [{"name": "B", "datatype": datatype, "shape": [2], "parameters": located}]
    if mixed:
        inputs.append({"name": "A", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}})
    text = json.dumps({"inputs": inputs}).encode()
    sent = urllib.request.Request(f"http://127.0.0.1:{running.http}/v2/models/any/infer", text + bytes(8 * mixed))
    sent.add_header("Inference-Header-Content-Length", str(len(text)))
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(sent, timeout=60)
        assert caught.value.code == 400
        assert json.loads(caught.value.read()) == {"error": UNKNOWN[mixed]}
