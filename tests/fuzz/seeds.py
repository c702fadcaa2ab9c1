"""Inputs of targets, from the requests that are compared with NVIDIA's server."""

from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format, message_factory
from tests.differential import grpc_cases
from tests.differential.cases import shared_memory
from tests.differential.http_calls import Call
from tests.differential.http_cases import TOPICS


def http_calls(*ends: str) -> Iterator[Call]:
    """Yield the HTTP requests whose path ends in one of these; without any, all."""
    cases = [case for topic in TOPICS.values() for case in topic]
    steps = [step for case in shared_memory.CASES for step in case.steps if isinstance(step, Call)]
    for call in [*[call for case in cases for call in case.calls], *steps]:
        if not ends or call.path.endswith(ends):
            yield call


def http_bytes(call: Call) -> bytes:
    """Return a request as it goes over a connection."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in call.headers)
    head = f"{call.method} {call.path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(call.body)}\r\n{headers}\r\n"
    return head.encode() + call.body


def grpc_messages(method: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the messages over gRPC to one method, or to all, each with its method's name."""
    steps = [step for case in shared_memory.CASES for step in case.steps if isinstance(step, shared_memory.Rpc)]
    calls = [(case.method, case.requests) for case in grpc_cases.CASES] + [
        (step.method, list(step.requests)) for step in steps
    ]
    for name, requests in calls:
        if method in ("", name):
            kind = message_factory.GetMessageClass(grpc_cases.SERVICE.methods_by_name[name].input_type)
            for request in requests:
                yield name, json_format.ParseDict(request, kind())
