"""Server reflection: a client without schemas finds the services, and calls them by what it finds."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection_pb2 as messages
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tests.runtime.frontends.conftest import FakePlane, Running

from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.protocol.grpc.reflection import SAME_MESSAGES, Reflection

SERVICE = "inference.GRPCInferenceService"
SERVICES = {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


@pytest.fixture
def channel(running: Running) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc}") as opened:
        yield opened


def test_grpcs_own_client_reads_the_services(channel: grpc.Channel) -> None:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert set(database.get_services()) == SERVICES
    pool = descriptor_pool.DescriptorPool(database)
    methods = pool.FindServiceByName(SERVICE).methods_by_name
    assert {"ModelInfer", "ModelStreamInfer", "TraceSetting"} <= set(methods.keys())
    live = methods["ServerLive"]
    request, response = (message_factory.GetMessageClass(kind) for kind in (live.input_type, live.output_type))
    call = channel.unary_unary(f"/{SERVICE}/ServerLive", request.SerializeToString, response.FromString)
    assert call(request(), timeout=5).live


def _ask(*requests: Any) -> list[Any]:
    reflection = Reflection()
    answers = [reflection.answer(request.SerializeToString()) for request in requests]
    return [messages.ServerReflectionResponse.FromString(answer) for answer in answers]


def test_a_file_comes_with_those_that_it_needs() -> None:
    request = messages.ServerReflectionRequest(host="h", file_containing_symbol="inference.ModelInferRequest")
    (answer,) = _ask(request)
    files = [descriptor_pb2.FileDescriptorProto.FromString(file) for file in
             answer.file_descriptor_response.file_descriptor_proto]  # fmt: skip
    assert [file.name for file in files] == ["model_config.proto", "grpc_service.proto"]
    assert (answer.valid_host, answer.original_request) == ("h", request)


@pytest.mark.parametrize(
    "requested",
    [
        {"file_by_filename": "nowhere.proto"},
        {"file_by_filename": "google/protobuf/descriptor.proto"},
        {"file_containing_symbol": "inference.Nothing"},
        {"file_containing_symbol": ""},
        {"all_extension_numbers_of_type": "inference.Nothing"},
        {"file_containing_extension": {"containing_type": "inference.ModelInferRequest", "extension_number": 3}},
        {},
    ],
)
def test_what_is_not_served_is_unknown(requested: dict[str, Any]) -> None:
    (answer,) = _ask(messages.ServerReflectionRequest(**requested))
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_there_are_no_extensions() -> None:
    (answer,) = _ask(messages.ServerReflectionRequest(all_extension_numbers_of_type="inference.ModelInferRequest"))
    assert answer.all_extension_numbers_response.base_type_name == "inference.ModelInferRequest"


@pytest.mark.parametrize("service", ["grpc.reflection.v1alpha.ServerReflection", SAME_MESSAGES])
def test_both_names_answer_many_requests_in_their_order(channel: grpc.Channel, service: str) -> None:
    ask = channel.stream_stream(f"/{service}/ServerReflectionInfo")
    names = [f"{number}.proto" for number in range(50)]
    sent = [messages.ServerReflectionRequest(file_by_filename=name).SerializeToString() for name in names]
    answers = [messages.ServerReflectionResponse.FromString(answer) for answer in ask(iter(sent), timeout=60)]
    assert [answer.original_request.file_by_filename for answer in answers] == names


def test_a_malformed_request_ends_the_call(channel: grpc.Channel) -> None:
    ask = channel.stream_stream(f"/{SAME_MESSAGES}/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError) as caught:
        list(ask(iter([b"\xff\xff"]), timeout=60))
    assert caught.value.code() is grpc.StatusCode.INTERNAL


async def test_it_can_be_switched_off() -> None:
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0, reflection=False)
    serving = await grpc_frontend.serve(FakePlane(), options)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{serving.port}") as opened:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await opened.unary_unary(f"/{SAME_MESSAGES}/ServerReflectionInfo")(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    await serving.stop(0)
