"""An object that breaks a rule which is newer than it can still be labelled, reported on, scaled and deleted."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator.api.on_server.asking import Asking, path
from tests.operator.api.on_server.conftest import FINALIZER, OLD
from tests.operator.api.rules.breaking import BREAKING

Body = dict[str, Any]
LABEL = {"metadata": {"labels": {"team": "search"}}}
STATUS = {"status": {"replicas": 1}}
STORED = [(kind, f"breaking-{number}", message) for number, (kind, _, message) in enumerate(BREAKING)]


def test_every_rule_lets_labels_statuses_and_other_fields_change(server: Asking) -> None:
    for kind, name, message in STORED:
        other = {"spec": {"revisionHistoryLimit": 3}}
        for change, part in ((LABEL, ""), (STATUS, "/status"), (other, "")):
            answer = server.patch(kind, OLD, name, change, part)
            assert answer.right, (message, change, answer.message)
        assert answer.body["metadata"]["finalizers"] == [FINALIZER]


def test_every_rule_lets_a_deleted_object_go(server: Asking, body: Callable[..., Body]) -> None:
    for number, (kind, name, message) in enumerate(STORED):
        assert server.send("DELETE", path(kind, OLD, name)).right
        done = server.patch(kind, OLD, name, {"metadata": {"finalizers": []}})
        assert done.right, (message, done.message)
        assert server.send("GET", path(kind, OLD, name)).status == 404, number


@pytest.mark.parametrize(
    ("kind", "before", "change", "message"),
    [
        ("InferenceModel", {}, {"minReplicas": 5}, "maxReplicas is at least minReplicas"),
        ("InferenceModel", {}, {"engine": {"accuracy": None}}, "a precision below 16 bits needs accuracy"),
        ("ServingPool", {}, {"runtime": {"args": ["--http-port=1"]}}, "args has a flag that Argosy sets itself"),
        ("Ensemble", {}, {"maxReplicas": 1, "minReplicas": 2}, "maxReplicas is at least minReplicas"),
    ],
)
def test_an_update_of_what_a_rule_reads_is_judged(
    server: Asking, body: Callable[..., Body], kind: str, before: dict[str, Any], change: Body, message: str
) -> None:
    right = body(kind, before)
    right["metadata"] |= {"name": f"judged-{len(message)}", "namespace": "judged"}
    assert server.create(right).right
    answer = server.patch(kind, "judged", right["metadata"]["name"], {"spec": change})
    assert answer.status == 422
    assert message in answer.message
