"""Spans: the same requests to Triton and to Argosy, and what both send to a receiver of OpenTelemetry."""

import pytest
from e2e.starting import give_up
from tests.differential.oracle import recorded
from tests.differential.span_cases import CASES, spans
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError
from tests.peers.triton import triton


@pytest.mark.triton
@pytest.mark.parametrize("model", CASES)
def test_triton_sends_spans_as_recorded(model: str) -> None:
    try:
        sent = spans(triton, model)
    except PeerUnavailableError as reason:
        give_up(reason)
    assert sent == recorded("spans")[model]


@pytest.mark.parametrize("model", CASES)
def test_argosy_sends_spans_as_triton(model: str) -> None:
    assert spans(argosy, model) == recorded("spans")[model]
