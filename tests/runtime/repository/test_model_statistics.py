"""Which versions' counters a request for statistics gets."""

from types import SimpleNamespace
from typing import Any

import pytest
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import ServingError
from argosy_runtime.repository.describing import statistics


def record(name: str, *versions: int) -> Any:
    counters = SimpleNamespace(message=lambda name, number: pb.ModelStatistics(name=name, version=number))
    served = SimpleNamespace(statistics=counters)
    return SimpleNamespace(name=name, identifier=name, serving=lambda: [(number, served) for number in versions])


@pytest.mark.parametrize("version", ["", "1", "9"])
def test_without_a_name_those_of_all_versions(version: str) -> None:
    answer = statistics([record("a", 1, 2), record("b", 1)], "", version, lambda *_: [])
    assert [(entry.name, entry.version) for entry in answer.model_stats] == [("a", "1"), ("a", "2"), ("b", "1")]


def test_a_version_of_a_model() -> None:
    answer = statistics([record("a", 1, 2)], "a", "2", lambda *_: [])
    assert [entry.version for entry in answer.model_stats] == ["2"]
    with pytest.raises(ServingError, match="requested model version is not available for model 'a'"):
        statistics([record("a", 1, 2)], "a", "9", lambda *_: [])
