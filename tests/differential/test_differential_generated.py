"""Requests that hypothesis makes are answered by Argosy as by the real Triton, field by field.

`pytest --hypothesis-profile=thorough` asks ten times as many.
"""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from hypothesis import HealthCheck, assume, given
from tests.differential.generated import requests
from tests.differential.generated.comparison import comparable, deviation, ends_triton
from tests.differential.grpc_cases import SERVICE, GrpcCase, answer
from tests.differential.http_calls import Call, send
from tests.differential.normalise import normalised
from tests.peers.server import Server
from tests.properties import examples

StartSide = Callable[[str], Server]
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
pytestmark = pytest.mark.triton


def _answers(server: Server, request: Call | GrpcCase) -> Any:
    if isinstance(request, GrpcCase):
        return comparable(answer(server.grpc, request))
    return comparable(normalised(send(server.http, request)))


def _compare(started: StartSide, request: Call | GrpcCase, kind: str, compared: Callable[[str], None]) -> None:
    assume(not ends_triton(request))
    triton, argosy = (_answers(started(side), request) for side in ("triton", "argosy"))
    compared(kind)
    if not deviation(request, triton, argosy):
        assert argosy == triton


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.json_calls())
def test_tensors_in_json(started: StartSide, compared: Callable[[str], None], call: Call) -> None:
    _compare(started, call, "JSON", compared)


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.binary_calls())
def test_binary_tensors(started: StartSide, compared: Callable[[str], None], call: Call) -> None:
    _compare(started, call, "binary tensors", compared)


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.generate_calls())
def test_generate(started: StartSide, compared: Callable[[str], None], call: Call) -> None:
    _compare(started, call, "generate", compared)


@examples(250, suppress_health_check=PATIENT)
@given(case=requests.grpc_cases())
def test_grpc(started: StartSide, compared: Callable[[str], None], case: GrpcCase) -> None:
    assume(_is_message(case))
    _compare(started, case, "gRPC", compared)


def _is_message(case: GrpcCase) -> bool:
    request_type = message_factory.GetMessageClass(SERVICE.methods_by_name[case.method].input_type)
    try:
        json_format.ParseDict(case.requests[0], request_type())
    except (json_format.ParseError, ValueError, TypeError):
        return False
    return True
