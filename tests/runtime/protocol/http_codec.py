"""Requests as the codec reads them."""

from argosy_runtime.messages import InferRequest
from argosy_runtime.protocol.http import request as http_request
from argosy_runtime.protocol.http.response import OutputEncoding

LIMIT = 1000


def decode(body: bytes, header_length: int | None = None) -> tuple[InferRequest, OutputEncoding]:
    return http_request.decode(body, len(body) if header_length is None else header_length, "m", "", LIMIT)
