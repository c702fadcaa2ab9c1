"""Inputs and outputs that are used again: other data, other shapes, into shared memory and out of it, as tritonclient's
published example `reuse_infer_objects` does; and requests that a client writes itself.
"""

from typing import Any
from uuid import uuid4

import grpc
import numpy as np
import pytest
import tritonclient.utils.shared_memory as shm
from tests.clients.four import FourClient
from tests.peers.server import Server
from tritonclient import http
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

ROW = np.arange(16, dtype=np.int32).reshape(1, 16)
ONES = np.ones((1, 16), np.int32)


def test_in_and_out_of_shared_memory(client: FourClient) -> None:
    name, size = f"reused-{uuid4().hex}", ROW.nbytes
    region = shm.create_shared_memory_region(name, f"/{name}", 4 * size)
    client.register_system_shared_memory(name, f"/{name}", 4 * size)
    inputs = [client.tensor("INPUT0", "INT32", ROW), client.tensor("INPUT1", "INT32", ONES)]
    outputs = [client.output("OUTPUT0"), client.output("OUTPUT1")]
    try:
        for _ in range(2):
            for tensor, values in zip(inputs, (ROW, ONES), strict=True):
                tensor.set_data_from_numpy(values)
            for output in outputs:
                output.unset_shared_memory()
            answer = client.infer("add_sub", inputs, outputs=outputs)
            assert answer.as_numpy("OUTPUT0").tolist() == (ROW + ONES).tolist()

            shm.set_shared_memory_region(region, [2 * ROW, ONES])
            for number, (tensor, output) in enumerate(zip(inputs, outputs, strict=True)):
                tensor.set_shared_memory(name, size, offset=number * size)
                output.set_shared_memory(name, size, offset=(2 + number) * size)
            client.infer("add_sub", inputs, outputs=outputs)
            sums = shm.get_contents_as_numpy(region, np.int32, [2, 16], offset=2 * size).tolist()
            assert sums == np.concatenate([2 * ROW + 1, 2 * ROW - 1]).tolist()
    finally:
        client.unregister_system_shared_memory(name)
        shm.destroy_shared_memory_region(region)


def test_other_data_and_other_shapes(client: FourClient) -> None:
    tensor = client.tensor("INPUT0", "FP32", [[1, 2]])
    for rows, columns in ((1, 2), (3, 1), (2, 5), (1, 2)):
        values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        tensor.set_shape([rows, columns])
        tensor.set_data_from_numpy(values)
        for _ in range(2):
            assert client.infer("identity", [tensor]).as_numpy("OUTPUT0").tolist() == values.tolist()


@pytest.mark.parametrize("client", ["http", "http.aio"], indirect=True)
def test_json_and_binary_in_turn(client: FourClient) -> None:
    tensor = client.tensor("IN", "INT32", ROW)
    for binary_in, binary_out in ((True, True), (False, True), (True, False), (False, False), (True, True)):
        tensor.set_data_from_numpy(ROW, binary_data=binary_in)
        answer = client.infer("scale", [tensor], outputs=[client.output("OUT", binary_data=binary_out)])
        assert answer.as_numpy("OUT").tolist() == (3 * ROW).tolist()


def test_bodies_that_the_client_only_makes_and_reads(server: Server) -> None:
    tensor = http.InferInput("IN", [1, 16], "INT32")
    tensor.set_data_from_numpy(ROW)
    body, length = http.InferenceServerClient.generate_request_body([tensor], request_id="made")
    with http.InferenceServerClient(server.http) as client:
        headers = {"Inference-Header-Content-Length": str(length)}
        reply = client._post("v2/models/scale/infer", body, headers, None)
        length = int(reply.get("inference-header-content-length"))
        answer = http.InferenceServerClient.parse_response_body(reply.read(), header_length=length)
    assert answer.as_numpy("OUT").tolist() == (3 * ROW).tolist()
    assert answer.get_response()["id"] == "made"


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("INT8", "int_contents", [-128, 127]),
        ("INT32", "int_contents", [-(2**31), 2**31 - 1]),
        ("INT64", "int64_contents", [-(2**63), 2**63 - 1]),
        ("UINT8", "uint_contents", [0, 255]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("FP32", "fp32_contents", [0.5, -2]),
        ("FP64", "fp64_contents", [1e300, -2]),
        ("BOOL", "bool_contents", [True, False]),
        ("STRING", "bytes_contents", [b"\xff", b""]),
    ],
)
def test_explicit_contents(server: Server, datatype: str, field: str, values: list[Any]) -> None:
    request = pb.ModelInferRequest(model_name="every_type")
    v2 = "BYTES" if datatype == "STRING" else datatype
    item = request.inputs.add(name=f"IN_{datatype}", datatype=v2, shape=[2])
    getattr(item.contents, field).extend(values)
    request.outputs.add(name=f"OUT_{datatype}")
    with grpc.insecure_channel(server.grpc) as channel:
        answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request)
    (output,), (raw,) = answer.outputs, answer.raw_output_contents
    assert (output.name, output.datatype, list(output.shape)) == (f"OUT_{datatype}", v2, [2])
    if datatype == "STRING":
        assert raw == b"\1\0\0\0\xff\0\0\0\0"
    else:
        assert np.frombuffer(raw, np.dtype(v2.lower().replace("fp", "float"))).tolist() == values
