"""The health check for Argo CD of the docs, run by Lua on statuses that Argosy wrote."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from lupa import LuaRuntime
from tests.docs.blocks import ROOT, blocks
from tests.operator.planning.declared import ensemble, gpu_node, model, pool
from tests.operator.planning.rolling import Rolling
from tests.operator.planning.rolling import model as released
from tests.operator.planning.simulated_cluster import Cluster
from tests.properties import examples

from argosy.api import InferenceModel, Resource
from argosy.local.resources import documents
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.rollout.state import Phase
from argosy.rollout.verdict import Outcome, Verdict

PAGE = ROOT / "docs" / "how-to" / "rollouts.md"


@pytest.fixture(scope="module")
def check() -> Any:
    """Return the check of the page as a function of a document."""
    (script,) = (block.text for block in blocks(PAGE.read_text()) if block.label == "lua")
    lua = LuaRuntime(unpack_returned_tuples=True)
    # Argo CD runs the script with the object as a global variable.
    run = lua.eval(f"function(object) obj = object hs = nil; local run = function() {script} end return run() end")

    def health(document: dict[str, Any]) -> tuple[str, str]:
        result = run(lua.table_from(document, recursive=True))
        return result["status"], result["message"]

    return health


def _documents(cluster: Cluster, resources: list[Resource]) -> dict[str, dict[str, Any]]:
    assert cluster.outcome is not None
    return {body["metadata"]["name"]: body for body in documents(resources, cluster.outcome.statuses)}


def test_a_version_from_its_load_to_its_service(check: Any) -> None:
    cluster, declared = Cluster((gpu_node("n", 2),)), [pool(), model("a")]
    cluster.tick(declared)
    assert check(_documents(cluster, declared)["a"])[0] == "Progressing"
    cluster.settle(declared)
    healthy = _documents(cluster, declared)
    assert [check(body)[0] for body in healthy.values()] == ["Healthy", "Healthy"]


def test_what_cannot_be_served_is_degraded_with_the_reason(check: Any) -> None:
    cluster, declared = (
        Cluster((gpu_node("n", 2),), refuses=frozenset({("a", 1)})),
        [pool(), model("a"), model("b", 1, 999)],
    )
    cluster.settle(declared)
    bodies = _documents(cluster, declared)
    assert [check(bodies[name])[0] for name in "ab"] == ["Degraded", "Degraded"]
    stalled = next(one for one in bodies["a"]["status"]["conditions"] if one["type"] == "Stalled")
    assert check(bodies["a"])[1] == stalled["message"] != ""


def test_what_is_suspended(check: Any) -> None:
    cluster, declared = Cluster((gpu_node("n", 2),)), [pool(suspend=True), model("a")]
    cluster.settle(declared)
    assert [check(body)[0] for body in _documents(cluster, declared).values()] == ["Suspended", "Suspended"]


def test_a_rollout_under_way_and_one_that_was_taken_back(check: Any) -> None:
    rolling = Rolling(Cluster((gpu_node("a"),)))

    def health(member: InferenceModel) -> str:
        return check(_documents(rolling.cluster, [member])["m"])[0]

    rolling.settle(released(1))
    assert health(released(1)) == "Healthy"
    rolling.until(released(2), Phase.STEPPING)
    assert health(released(2)) == "Progressing"
    paused = released(2, annotations={"argosy.dev/pause": "true"})
    rolling.tick(paused, 2)
    assert health(paused) == "Suspended"
    rolling.judge(Outcome.FAILED)
    rolling.until(released(2), Phase.HELD)
    rolling.settle(released(2))
    status, message = check(_documents(rolling.cluster, [released(2)])["m"])
    assert status == "Degraded"
    assert "12 of 400 requests failed" in message
    rolling.settle(released(1))
    assert health(released(1)) == "Healthy"


ROLLOUT = {"shadow": {"traffic": "50%", "duration": "3s"}, "steps": [{"traffic": "10%", "pause": "5s"}]}
UNDER_WAY = {Phase.LOADING, Phase.SHADOWING, Phase.STEPPING, Phase.PROMOTING, Phase.ROLLING_BACK}
HEALTH = {Phase.STABLE: "Healthy", Phase.PROMOTED: "Healthy", Phase.HELD: "Degraded"}
"""Once nothing is left to be unloaded; before, it may be Progressing."""


def _of_a_model(version: int) -> list[Resource]:
    return [pool(), model("a", version, 5, rollout=ROLLOUT)]


def _of_an_ensemble(version: int) -> list[Resource]:
    return [pool(), model("a", version, 5), model("b", 1, 5), ensemble("e", "a", "b", rollout=ROLLOUT)]


@pytest.mark.parametrize(
    ("declared", "identity"),
    [(_of_a_model, "InferenceModel default/a"), (_of_an_ensemble, "Ensemble default/e")],
    ids=["model", "ensemble"],
)
def test_health_and_kstatus_agree_in_every_phase(
    check: Any, declared: Callable[[int], list[Resource]], identity: str
) -> None:
    cluster, name, phases = Cluster((gpu_node("n"),)), identity.rpartition("/")[2], set[Phase]()

    def tick(version: int, judged: Outcome) -> Phase:
        cluster.tick(declared(version))
        assert cluster.outcome is not None
        state = cluster.outcome.rollouts.members[identity].state
        verdict = Verdict(judged, state.analysis, "ErrorRate", "12 of 400 requests failed")
        evidence = {identity: CandidateEvidence(verdict, 1000, None)}
        cluster.snapshot = replace(cluster.snapshot, evidence=evidence)
        body = _documents(cluster, declared(version))[name]
        held = {one["type"] for one in body["status"]["conditions"] if one["status"] == "True"}
        status, message = check(body)
        allowed = {"Progressing"} if state.phase in UNDER_WAY else {HEALTH[state.phase], "Progressing"}
        assert status in allowed, (state.phase, status, message)
        assert len(held & {"Ready", "Reconciling", "Stalled"}) == 1, (state.phase, held)
        assert message
        phases.add(state.phase)
        return state.phase

    for version, judged, end in (
        (1, Outcome.SUCCESSFUL, Phase.STABLE),
        (2, Outcome.SUCCESSFUL, Phase.PROMOTED),
        (3, Outcome.FAILED, Phase.HELD),
    ):
        reached = [tick(version, judged) for _ in range(60)]
        assert reached[-1] is end, reached
        status, message = check(_documents(cluster, declared(version))[name])
        assert status == HEALTH[end]
    assert "12 of 400 requests failed" in message
    assert phases == set(Phase)


@pytest.mark.parametrize(
    "changes",
    [{"generation": 9}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}],
)
def test_a_spec_that_was_not_seen_or_is_deleted_is_progressing(check: Any, changes: dict[str, Any]) -> None:
    cluster, declared = Cluster((gpu_node("n", 2),)), [pool(), model("a")]
    cluster.settle(declared)
    body = _documents(cluster, declared)["a"]
    assert check({**body, "metadata": {**body["metadata"], **changes}})[0] == "Progressing"


def test_a_resource_without_a_status_is_progressing(check: Any) -> None:
    assert check({"metadata": {"generation": 1}}) == ("Progressing", "Argosy has not seen this spec yet")


@given(
    versions=st.lists(st.integers(1, 3), min_size=1, max_size=4), refused=st.integers(0, 3), seconds=st.integers(1, 9)
)
@examples(10, suppress_health_check=[HealthCheck.too_slow])
def test_health_says_what_the_conditions_of_kstatus_say(
    check: Any, versions: list[int], refused: int, seconds: int
) -> None:
    cluster = Cluster((gpu_node("n", 2),), timedelta(seconds=2), refuses=frozenset({("a", refused)}))
    for version in versions:
        declared = [pool(), model("a", version)]
        for _ in range(seconds):
            cluster.tick(declared)
            for body in _documents(cluster, declared).values():
                held = {one["type"] for one in body["status"]["conditions"] if one["status"] == "True"}
                expected = {"Stalled": "Degraded", "Reconciling": "Progressing", "Ready": "Healthy"}
                assert check(body)[0] == next(health for condition, health in expected.items() if condition in held)
