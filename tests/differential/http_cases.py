"""Every HTTP case by topic, and how one is answered."""

from typing import Any

from tests.differential.cases import (
    http_binary,
    http_ensembles,
    http_errors,
    http_generate,
    http_infer,
    http_inputs,
    http_lifecycle,
    http_protocol,
    http_python,
    http_sequences,
    http_server,
)
from tests.differential.http_calls import Case, send
from tests.differential.normalise import normalised

TOPICS: dict[str, list[Case]] = {
    "http_server": http_server.CASES,
    "http_infer": http_infer.CASES,
    "http_errors": http_errors.CASES,
    "http_binary": http_binary.CASES,
    "http_generate": http_generate.CASES,
    "http_ensembles": http_ensembles.CASES,
    "http_inputs": http_inputs.CASES,
    "http_lifecycle": http_lifecycle.CASES,
    "http_protocol": http_protocol.CASES,
    "http_sequences": http_sequences.CASES,
    "http_python": http_python.CASES,
}


def answers(address: str, case: Case) -> list[Any]:
    """Return the normalised answer to each of the case's calls, in order."""
    return [normalised(send(address, call)) for call in case.calls]
