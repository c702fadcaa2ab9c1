"""Every gRPC case: a method and its requests as JSON values, and its answer as such."""

from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import json_format, message_factory
from tests.differential.cases import grpc_infer, grpc_inputs, grpc_protocol, grpc_server, grpc_stream
from tests.differential.normalise import values
from tritonclient.grpc import service_pb2

SERVICE = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]


@dataclass(frozen=True)
class GrpcCase:
    """Requests to one method; more than one only for the stream."""

    name: str
    method: str
    requests: list[dict[str, Any]]
    metadata: dict[str, str] = field(default_factory=dict)


CASES = [
    *(GrpcCase(*call) for call in grpc_server.CALLS),
    *(GrpcCase(*call) for call in grpc_protocol.CALLS),
    *(GrpcCase(f"infer {name}", "ModelInfer", [request]) for name, request in grpc_infer.REQUESTS.items()),
    *(GrpcCase(f"inputs {name}", "ModelInfer", [request]) for name, request in grpc_inputs.REQUESTS.items()),
    *(
        GrpcCase(f"stream {name}", "ModelStreamInfer", requests, metadata)
        for name, requests, metadata in grpc_stream.STREAMS
    ),
]


def answer(address: str, case: GrpcCase) -> dict[str, Any]:
    """Return `{"code", "details", "messages"}`: every message the server sent, and how it ended."""
    method = SERVICE.methods_by_name[case.method]
    request_type = message_factory.GetMessageClass(method.input_type)
    requests = [json_format.ParseDict(request, request_type()) for request in case.requests]
    messages: list[Any] = []
    code, details = "OK", ""
    with grpc.insecure_channel(address) as channel:
        try:
            for message in _call(channel, method, requests, case.metadata):
                messages += [json_format.MessageToDict(message, preserving_proto_field_name=True)]
        except grpc.RpcError as error:
            code, details = error.code().name, error.details()
    normal: dict[str, Any] = values({"code": code, "details": details, "messages": messages})
    return normal


def _call(channel: Any, method: Any, requests: list[Any], metadata: dict[str, str]) -> Any:
    path = f"/{SERVICE.full_name}/{method.name}"
    parse = message_factory.GetMessageClass(method.output_type).FromString
    pairs = tuple((name, value.encode() if name.endswith("-bin") else value) for name, value in metadata.items())
    if method.name == "ModelStreamInfer":
        stream = channel.stream_stream(path, lambda request: request.SerializeToString(), parse)
        return stream(iter(requests), timeout=20.0, metadata=pairs)
    unary = channel.unary_unary(path, lambda request: request.SerializeToString(), parse)
    return [unary(requests[0], timeout=20.0, metadata=pairs)]
