"""Traces: the same settings and requests to Triton and to Argosy, and the files that they write."""

from pathlib import Path

import pytest
from e2e.starting import give_up
from tests.differential.deviations import owed
from tests.differential.oracle import recorded
from tests.differential.trace_cases import CASES, TraceCase, outcome
from tests.peers.argosy import argosy
from tests.peers.cache import PeerUnavailableError
from tests.peers.triton import triton

BY_NAME = [pytest.param(case, id=case.name) for case in CASES]


@pytest.mark.triton
@pytest.mark.parametrize("case", BY_NAME)
def test_triton_answers_as_recorded(case: TraceCase, tmp_path: Path):
    try:
        answered = outcome(triton, case, tmp_path)
    except PeerUnavailableError as reason:
        give_up(reason)
    assert answered == recorded("traces")[case.name]


@pytest.mark.parametrize("case", BY_NAME)
def test_argosy_answers_as_triton(case: TraceCase, tmp_path: Path):
    assert outcome(argosy, case, tmp_path) == owed("argosy", "traces", case.name, recorded("traces")[case.name])
