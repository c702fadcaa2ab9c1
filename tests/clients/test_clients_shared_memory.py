"""System shared memory by tritonclient's own `utils.shared_memory`, as its published examples use it."""

import base64
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import tritonclient.utils.shared_memory as shm
from tests.clients.four import NUMPY_TYPES, FourClient, connect
from tests.clients.four import close as disconnect
from tests.memory_objects import FOLDER
from tests.peers.server import Server
from tests.waiting import wait
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

LOST = ("cannot read shared memory region", "cannot write shared memory region")
ROW = np.arange(16, dtype=np.int32).reshape(1, 16)
ONES = np.ones((1, 16), np.int32)

Share = Callable[..., Any]
"""Creates a region with arrays in it and registers it under its name; `size`: of the region, in bytes."""


@pytest.fixture
def share(client: FourClient) -> Iterator[Share]:
    """Yield what makes regions; they are unregistered and destroyed at the end."""
    handles: list[Any] = []

    def make(name: str, size: int, *arrays: np.ndarray) -> Any:
        key = f"/argosy-{name}-{uuid4().hex}"
        handle = shm.create_shared_memory_region(name, key, size)
        handles.append(handle)
        shm.set_shared_memory_region(handle, arrays)
        client.register_system_shared_memory(name, key, size)
        return handle

    yield make
    client.unregister_system_shared_memory()
    for handle in handles:
        shm.destroy_shared_memory_region(handle)


def placed(client: FourClient, name: str, datatype: str, shape: tuple[int, ...], *location: Any) -> Any:
    """Return an input in a region: its name, the size, the offset."""
    made = client.module.InferInput(name, list(shape), datatype)
    made.set_shared_memory(*location)
    return made


def location(client: FourClient, name: str, *location: Any) -> Any:
    """Return a requested output in a region."""
    made = client.module.InferRequestedOutput(name)
    made.set_shared_memory(*location)
    return made


def refused(call: Callable[[], Any]) -> str:
    """Return the message of a call's refusal, "" where it is answered."""
    try:
        call()
    except InferenceServerException as error:
        return str(error)
    return ""


def regions(client: FourClient) -> set[str]:
    status = client.message("get_system_shared_memory_status")
    return set(status.get("regions", {})) if isinstance(status, dict) else {region["name"] for region in status}


def test_two_inputs_in_one_region_and_two_outputs_in_another(client: FourClient, share: Share) -> None:
    share("input_data", 128, ROW, ONES)
    output = share("output_data", 128)
    inputs = [
        placed(client, "INPUT0", "INT32", (1, 16), "input_data", 64),
        placed(client, "INPUT1", "INT32", (1, 16), "input_data", 64, 64),
    ]
    outputs = [location(client, "OUTPUT0", "output_data", 64), location(client, "OUTPUT1", "output_data", 64, 64)]
    result = client.infer("add_sub", inputs, outputs=outputs)
    assert result.get_output("OUTPUT0") is not None
    np.testing.assert_array_equal(shm.get_contents_as_numpy(output, np.int32, [1, 16]), ROW + 1)
    np.testing.assert_array_equal(shm.get_contents_as_numpy(output, np.int32, [1, 16], offset=64), ROW - 1)
    assert regions(client) == {"input_data", "output_data"}
    client.unregister_system_shared_memory("output_data")
    assert regions(client) == {"input_data"}


def test_strings(client: FourClient, share: Share) -> None:
    strings = np.array([[b"16", "\N{SNOWMAN}".encode(), b""]], np.object_)
    encoded = serialize_byte_tensor(strings)
    size = len(encoded.item())
    share("input_data", size, encoded)
    output = share("output_data", size + 32)
    inputs = [placed(client, "INPUT0", "BYTES", (1, 3), "input_data", size)]
    client.infer("bytes_identity", inputs, outputs=[location(client, "OUTPUT0", "output_data", size + 32)])
    assert shm.get_contents_as_numpy(output, np.object_, [1, 3]).tolist() == strings.tolist()


@pytest.mark.parametrize("datatype", sorted(NUMPY_TYPES.keys() - {"BF16", "BYTES"}))
def test_every_datatype(client: FourClient, share: Share, datatype: str) -> None:
    values = np.array([0, 1, 1, 0, 1], NUMPY_TYPES[datatype])
    region = share("both", 2 * values.nbytes, values)
    inputs = [placed(client, f"IN_{datatype}", datatype, (5,), "both", values.nbytes)]
    outputs = [location(client, f"OUT_{datatype}", "both", values.nbytes, values.nbytes)]
    client.infer("every_type", inputs, outputs=outputs)
    answered = shm.get_contents_as_numpy(region, values.dtype, [5], offset=values.nbytes)
    assert answered.tolist() == values.tolist()


def test_the_output_of_one_model_is_the_input_of_the_next(client: FourClient, share: Share) -> None:
    share("first", 64, ROW)
    share("between", 64)
    last = share("last", 64)
    for source, target in (("first", "between"), ("between", "last")):
        inputs = [placed(client, "IN", "INT32", (1, 16), source, 64)]
        client.infer("scale", inputs, outputs=[location(client, "OUT", target, 64)])
    once = client.infer("scale", [client.tensor("IN", "INT32", ROW)]).as_numpy("OUT")
    twice = client.infer("scale", [client.tensor("IN", "INT32", once)]).as_numpy("OUT")
    np.testing.assert_array_equal(shm.get_contents_as_numpy(last, np.int32, [1, 16]), twice)


def test_an_ensemble(client: FourClient, share: Share) -> None:
    share("input_data", 64, ROW)
    output = share("output_data", 64)
    expected = client.infer("diamond", [client.tensor("IN", "INT32", ROW)])
    outputs = [location(client, "SUM", "output_data", 64), client.output("DIFFERENCE")]
    result = client.infer("diamond", [placed(client, "IN", "INT32", (1, 16), "input_data", 64)], outputs=outputs)
    np.testing.assert_array_equal(shm.get_contents_as_numpy(output, np.int32, [1, 16]), expected.as_numpy("SUM"))
    np.testing.assert_array_equal(result.as_numpy("DIFFERENCE"), expected.as_numpy("DIFFERENCE"))


def test_what_is_registered_twice_or_does_not_fit_is_refused(client: FourClient, share: Share) -> None:
    share("data", 128, ROW)
    with pytest.raises(InferenceServerException, match="shared memory region 'data' already in manager"):
        client.register_system_shared_memory("data", "/any", 64)
    with pytest.raises(InferenceServerException, match="Invalid offset \\+ byte size for shared memory region: 'data'"):
        client.infer("scale", [placed(client, "IN", "INT32", (1, 16), "data", 64, 65)])
    with pytest.raises(InferenceServerException, match="Expected 64, got 128"):
        client.infer("scale", [placed(client, "IN", "INT32", (1, 16), "data", 128)])
    inputs = [placed(client, "IN", "INT32", (1, 16), "data", 64)]
    with pytest.raises(InferenceServerException, match=r"\(63 bytes\) should be at least 64 bytes to hold the results"):
        client.infer("scale", inputs, outputs=[location(client, "OUT", "data", 63)])
    with pytest.raises(InferenceServerException, match="failed to register shared memory region: invalid args"):
        client.register_cuda_shared_memory("gpu", base64.b64encode(bytes(64)), 0, 64)


@pytest.mark.parametrize("client", ["grpc"], indirect=True)
def test_responses_of_a_decoupled_model(client: FourClient, share: Share, server: Server) -> None:
    share("input_data", 12, np.array([4, 5, 6], np.int32))
    output = share("output_data", 4)
    replies: queue.Queue[Any] = queue.Queue()
    streaming = connect("grpc", server.http, server.grpc)
    streaming.start_stream(lambda result, error: replies.put((result, error)))
    inputs = [placed(client, "IN", "INT32", (3,), "input_data", 12)]
    outputs = [location(client, "OUT", "output_data", 4), client.output("IDX")]
    streaming.async_stream_infer("repeat", inputs, outputs=outputs, enable_empty_final_response=True)
    for index in range(3):
        result, error = replies.get(timeout=30)
        assert error is None
        assert result.get_response().raw_output_contents[0] == b""
        assert result.as_numpy("IDX").tolist() == [index]
    replies.get(timeout=30)
    assert shm.get_contents_as_numpy(output, np.int32, [1]).tolist() == [6]
    disconnect(streaming)


@pytest.mark.parametrize("client", ["grpc"], indirect=True)
def test_a_cancelled_request_lets_its_region_go(client: FourClient, share: Share) -> None:
    share("data", 4, np.array([300], np.int32))
    answers: queue.Queue[Any] = queue.Queue()
    inputs = [placed(client, "IN", "INT32", (1,), "data", 4)]
    call = client.async_infer("slow", inputs, lambda result, error: answers.put(error))
    time.sleep(0.05)
    client.unregister_system_shared_memory("data")
    assert regions(client) == {"data"}
    call.cancel()
    assert answers.get(timeout=30).status() == "StatusCode.CANCELLED"
    wait(lambda: not regions(client), 0.02)


def test_a_region_that_shrinks_and_vanishes_under_load_spoils_its_own_requests(
    client: FourClient, share: Share, server: Server
) -> None:
    """One client cuts its memory off again and again; requests fail or are right, those of others are always right."""
    size = 1 << 20
    numbers = np.arange(size // 4, dtype=np.float32).reshape(1, -1)
    region = share("lost", 2 * size, numbers)
    path = FOLDER / region._shm_key.lstrip("/")
    stop = threading.Event()

    def spoil() -> None:
        for length in itertools.cycle((0, 4096, size + 5, 2 * size)):
            if stop.is_set():
                return
            with path.open("r+b") as file:
                file.truncate(length)

    thread = threading.Thread(target=spoil)
    thread.start()
    lost = 0
    inputs = [placed(client, "INPUT0", "FP32", numbers.shape, "lost", size)]
    outputs = [location(client, "OUTPUT0", "lost", size, size)]
    try:
        for _ in range(60):
            refusal = refused(lambda: client.infer("identity", inputs, outputs=outputs))
            assert refusal == "" or any(text in refusal for text in LOST)
            lost += bool(refusal)
            answer = client.infer("identity", [client.tensor("INPUT0", "FP32", [[1, 2]])])
            assert answer.as_numpy("OUTPUT0").tolist() == [[1, 2]]
    finally:
        stop.set()
        thread.join()
    assert lost
    assert server.alive()
    path.unlink()
    path.touch()
    with pytest.raises(InferenceServerException, match="invalid args"):
        client.register_system_shared_memory("again", region._shm_key, size)
