"""Rounds of random histories are decided the same from their bundles; what differs is named."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.simulated_cluster import START, Cluster
from tests.properties import examples

from argosy.reconcile import reconcile
from argosy.replay.bundle import bundle_document, parsed_bundle
from argosy.replay.codec import DocumentError
from argosy.replay.decisions import replayed
from argosy.replay.differences import differences
from argosy.snapshot import FleetSnapshot

DRAIN = timedelta(seconds=5)


def _text(snapshot: FleetSnapshot) -> str:
    return json.dumps(bundle_document("1", snapshot, START, DRAIN, reconcile(snapshot, START, DRAIN)))


@given(
    versions=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    replicas=st.integers(1, 2),
    refuses=st.booleans(),
    seconds=st.integers(1, 4),
)
@examples(15, suppress_health_check=[HealthCheck.too_slow])
def test_a_round_is_decided_the_same_from_its_bundle(
    versions: list[int], replicas: int, refuses: bool, seconds: int
) -> None:
    refused = frozenset({("a", 2)}) if refuses else frozenset()
    cluster = Cluster((gpu_node("n0", 2), gpu_node("n1", 2)), refuses=refused)
    for version in versions:
        resources = [pool(), model("a", version, minReplicas=replicas), model("b"), ensemble("e", "a", "b")]
        for _ in range(seconds):
            cluster.tick(resources)
        again = replayed(parsed_bundle(_text(cluster.snapshot)))
        assert again.error == ""
        assert again.differences == ()


def test_a_decision_that_is_another_one_is_named_by_its_field() -> None:
    cluster = Cluster((gpu_node("n", 2),))
    cluster.settle([pool(), model("a")])
    document = json.loads(_text(cluster.snapshot))
    document["decisions"]["statuses"]["InferenceModel default/a"]["replicas"] = 7
    (difference,) = replayed(parsed_bundle(json.dumps(document))).differences
    assert difference.path == "decisions.statuses.InferenceModel default/a.replicas"
    assert (difference.recorded, difference.replayed) == (7, 1)


def test_a_round_that_failed_is_replayed_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of the planner")

    snapshot = FleetSnapshot((pool(), model("a")), (gpu_node("n", 2),))
    text = json.dumps(bundle_document("1", snapshot, START, DRAIN, RuntimeError("a fault of the planner")))
    repaired = replayed(parsed_bundle(text))
    assert [difference.path for difference in repaired.differences] == ["error", "decisions"]
    monkeypatch.setattr("argosy.replay.decisions.reconcile", broken)
    again = replayed(parsed_bundle(text))
    assert again.error == "RuntimeError: a fault of the planner"
    assert again.is_same


def test_secrets_change_no_decision() -> None:
    secret = "correct-horse-battery"
    declared = [
        pool(runtime={"podTemplate": {"spec": {"containers": [{"name": "server", "env": [_env("A", secret)]}]}}}),
        model("a", config={"parameters": {"api_key": {"string_value": secret}}}),
    ]
    cluster = Cluster((gpu_node("n", 2),))
    cluster.settle(declared)
    text = _text(cluster.snapshot)
    assert secret not in text
    bundle = parsed_bundle(text)
    assert len(bundle.redacted) >= 2
    assert replayed(bundle).is_same


def _env(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: "{", "no JSON"),
        (lambda document: "[]", "no bundle: argosyBundle"),
        (lambda document: json.dumps({**document, "argosyBundle": 99}), "bundle of format 99"),
        (lambda document: json.dumps({**document, "now": "2026-01-01T00:00:00"}), "now: must have a time zone"),
        (lambda document: json.dumps({**document, "now": "soon"}), "now: "),
        (lambda document: json.dumps({**document, "drainPeriodSeconds": "x"}), "wrong type"),
        (lambda document: json.dumps({name: of for name, of in document.items() if name != "snapshot"}), "'snapshot'"),
    ],
)
def test_a_file_that_is_no_bundle(change: object, message: str) -> None:
    document = json.loads(_text(FleetSnapshot((pool(),), (gpu_node("n", 1),))))
    with pytest.raises(DocumentError, match=message):
        parsed_bundle(change(document))


def test_differences_of_documents() -> None:
    before = {"a": 1, "b": [1, 2], "c": {"d": None}}
    after = {"a": 1, "b": [1, 3, 4], "c": {}, "e": 0}
    paths = [(one.path, one.recorded, one.replayed) for one in differences(before, after)]
    absent = next(differences({"x": 1}, {})).replayed
    assert paths == [("b[1]", 2, 3), ("b[2]", absent, 4), ("c.d", None, absent), ("e", absent, 0)]
    assert list(differences(before, before)) == []


def test_the_period_of_draining_is_part_of_a_bundle(tmp_path: Path) -> None:
    cluster = Cluster((gpu_node("n0", 2), gpu_node("n1", 2)))
    cluster.settle([pool(), model("a", minReplicas=2)])
    bundle = parsed_bundle(_text(cluster.snapshot))
    assert bundle.drain_period == DRAIN
    assert bundle.now == START
    assert replace(bundle, decisions=None).snapshot == cluster.snapshot
