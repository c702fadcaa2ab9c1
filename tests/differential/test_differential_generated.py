"""Requests that hypothesis makes are answered by Argosy as by the real Triton, field by field.

`pytest --hypothesis-profile=thorough` asks ten times as many. A request on which the real Triton ends is not compared,
and the end of the run names it.
"""

import pytest
from google.protobuf import json_format, message_factory
from hypothesis import HealthCheck, assume, given
from tests.differential.generated import requests
from tests.differential.generated.comparison import deviation, ends_triton
from tests.differential.generated.servers import Servers
from tests.differential.grpc_cases import SERVICE, GrpcCase
from tests.differential.http_calls import Call
from tests.properties import examples

PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
pytestmark = pytest.mark.triton


def _compare(servers: Servers, request: Call | GrpcCase, kind: str) -> None:
    assume(not ends_triton(request))
    triton = servers.triton(request)
    assume(triton is not None)
    argosy = servers.argosy(request)
    servers.compared[kind] += 1
    if not deviation(request, triton, argosy):
        assert argosy == triton


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.json_calls())
def test_tensors_in_json(servers: Servers, call: Call) -> None:
    _compare(servers, call, "JSON")


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.binary_calls())
def test_binary_tensors(servers: Servers, call: Call) -> None:
    _compare(servers, call, "binary tensors")


@examples(250, suppress_health_check=PATIENT)
@given(call=requests.generate_calls())
def test_generate(servers: Servers, call: Call) -> None:
    _compare(servers, call, "generate")


@examples(250, suppress_health_check=PATIENT)
@given(case=requests.grpc_cases())
def test_grpc(servers: Servers, case: GrpcCase) -> None:
    assume(_is_message(case))
    _compare(servers, case, "gRPC")


def _is_message(case: GrpcCase) -> bool:
    request_type = message_factory.GetMessageClass(SERVICE.methods_by_name[case.method].input_type)
    try:
        json_format.ParseDict(case.requests[0], request_type())
    except (json_format.ParseError, ValueError, TypeError):
        return False
    return True
