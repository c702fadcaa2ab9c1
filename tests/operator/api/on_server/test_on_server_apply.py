"""Server-side apply of one file by two managers, and /scale."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator.api.on_server.asking import Answer, Asking, path

from argosy.api import KINDS

Body = dict[str, Any]
BODIES: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in sorted(KINDS)),
    ("InferenceModel", {"versionPolicy": {"all": {}}}),
    ("InferenceModel", {"batching": ..., "sequence": {"direct": {}}}),
    ("ServingPool", {"rateLimit": {}, "packing": {}, "runtime.podTemplate": {}}),
]


def declared(answer: Answer) -> Body:
    """Return an object without the fields in which the server records its writers."""
    metadata = {key: value for key, value in answer.body["metadata"].items() if key != "managedFields"}
    return answer.body | {"metadata": metadata}


@pytest.mark.parametrize(("kind", "changes"), BODIES)
def test_the_same_file_applied_by_another_manager_changes_nothing(
    server: Asking, body: Callable[..., Body], kind: str, changes: dict[str, Any]
) -> None:
    file = body(kind, changes)
    file["metadata"]["namespace"] = f"apply-{BODIES.index((kind, changes))}"
    first = server.apply(file, "one")
    assert first.right, first.message
    second = server.apply(file, "two")
    assert second.right, second.message
    again = server.apply(file, "one")
    assert again.right, again.message
    changing = ("resourceVersion",)
    for later in (second, again):
        reported, before = declared(later), declared(first)
        for answer in (reported, before):
            answer["metadata"] = {key: value for key, value in answer["metadata"].items() if key not in changing}
        assert reported == before


def test_a_steps_entry_of_one_manager_stands_alongside_anothers(server: Asking, body: Callable[..., Body]) -> None:
    """Entries are merged by their traffic, so that several managers may own entries of one list."""
    file = body("InferenceModel")
    file["metadata"]["namespace"] = "entries"
    assert server.apply(file, "one").right
    further = {key: file[key] for key in ("apiVersion", "kind", "metadata")}
    further["spec"] = {"rollout": {"steps": [{"traffic": "80%"}]}}
    answer = server.apply(further, "two")
    assert answer.right, answer.message
    assert [step["traffic"] for step in answer.body["spec"]["rollout"]["steps"]] == ["5%", "50%", "80%"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_scale_reads_and_writes_replicas(server: Asking, body: Callable[..., Body], kind: str) -> None:
    made = body(kind, {"replicas": 1})
    made["metadata"]["namespace"] = "scale"
    assert server.create(made).right
    where = path(kind, "scale", made["metadata"]["name"])
    assert server.patch(kind, "scale", made["metadata"]["name"], {"status": {"replicas": 4}}, "/status").right
    assert server.patch(kind, "scale", made["metadata"]["name"], {"spec": {"replicas": 3}}, "/scale").right
    assert server.send("GET", where).body["spec"]["replicas"] == 3
    scale = server.send("GET", f"{where}/scale").body
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 4)
