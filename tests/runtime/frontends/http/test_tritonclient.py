"""NVIDIA's HTTP client gets its answers."""

import asyncio

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tests.runtime.frontends.conftest import Running
from tritonclient.utils import InferenceServerException


def test_tritonclient(running: Running) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("echo")
        assert client.get_server_metadata()["name"] == "argosy"
        assert client.get_model_config("echo")["backend"] == "python"
        numbers = np.array([1, -2], np.int32)
        strings = np.array([b"\xff\x00", "é".encode()], np.object_)
        inputs = [triton.InferInput("A", [2], "INT32"), triton.InferInput("B", [2], "BYTES")]
        inputs[0].set_data_from_numpy(numbers, binary_data=False)
        inputs[1].set_data_from_numpy(strings)
        outputs = [
            triton.InferRequestedOutput("OUT_A"),
            triton.InferRequestedOutput("OUT_B", binary_data=True),
        ]
        result = client.infer(
            "any", inputs, outputs=outputs, request_id="r", sequence_id=5, sequence_start=True, priority=3,
            timeout=9, parameters={"mine": 1.5},
        )  # fmt: skip
        np.testing.assert_array_equal(result.as_numpy("OUT_A"), numbers)
        assert list(result.as_numpy("OUT_B")) == list(strings)
        assert result.get_response()["id"] == "r"
    seen = running.plane.requests[0]
    assert (seen.sequence_id, seen.sequence_start, seen.sequence_end) == (5, True, False)
    assert (seen.priority, seen.timeout_us, seen.parameters) == (3, 9, {"mine": 1.5})


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_tritonclient_compression_and_classification(running: Running, algorithm: str) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        sent = triton.InferInput("IN", [1, 3], "FP32")
        sent.set_data_from_numpy(np.array([[0.5, 2, 1]], np.float32))
        result = client.infer(
            "echo",
            [sent],
            outputs=[triton.InferRequestedOutput("OUT", class_count=2)],
            request_compression_algorithm=algorithm,
            response_compression_algorithm=algorithm,
        )
        assert result.as_numpy("OUT").tolist() == [[b"2.000000:1:dog", b"1.000000:2"]]


async def test_tritonclient_aio(running: Running) -> None:
    async with triton_aio.InferenceServerClient(f"127.0.0.1:{running.http}") as client:
        sent = triton_aio.InferInput("IN", [1, 2], "FP32")
        sent.set_data_from_numpy(np.array([[np.nan, 1]], np.float32), binary_data=False)
        results = await asyncio.gather(*(client.infer("echo", [sent]) for _ in range(8)))
        assert all(np.isnan(result.as_numpy("OUT")[0, 0]) for result in results)
        with pytest.raises(InferenceServerException, match="unknown model"):
            await client.get_model_metadata("none")
