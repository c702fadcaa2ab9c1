"""Specs of resources as ControllerRevisions, and read back from them."""

from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.render.workloads.cases import CASES, read_case

from argosy.api import InferenceModel, parse_documents
from argosy.api.documents import Resource, parse_body
from argosy.planning.history import ControllerRevision
from argosy.render.workloads.revisions import LatestRevisions, controller_revision, controller_revision_name


def model(uid: str = "u1", version: int = 1, **spec: Any) -> InferenceModel:
    """Return a model of pool p."""
    defaults = {"inputs": None, "outputs": None, "footprint": None}
    return declared.model("m", version, metadata={"namespace": "n", "uid": uid}, **{**defaults, **spec})


POOL = declared.pool(metadata={"namespace": "n", "uid": "u0"})


def revision(resource: Resource, number: int) -> dict[str, Any]:
    """Return the ControllerRevision of a resource."""
    return controller_revision(POOL, resource, ControllerRevision(controller_revision_name(resource), number))


def test_equal_revisions_have_one_name_and_others_another() -> None:
    assert controller_revision_name(model()) == controller_revision_name(model())
    assert controller_revision_name(model()).startswith("m-")
    different = [model(), model(version=2), model(uid="u2"), model(minReplicas=2)]
    assert len({controller_revision_name(item) for item in different}) == len(different)


def test_what_scales_a_model_or_bounds_its_history_makes_no_other_revision() -> None:
    assert controller_revision_name(model(revisionHistoryLimit=3)) == controller_revision_name(model())


def test_it_goes_with_its_resource_and_has_its_spec_and_number() -> None:
    result = revision(model(version=3), 7)
    assert (result["apiVersion"], result["kind"], result["revision"]) == ("apps/v1", "ControllerRevision", 7)
    assert result["metadata"]["namespace"] == "n"
    assert result["metadata"]["labels"]["argosy.dev/pool"] == "p"
    assert result["metadata"]["labels"]["argosy.dev/model"] == "m"
    (owner,) = result["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("InferenceModel", "m", "u1")
    assert result["data"]["spec"]["version"] == 3
    assert "argosy.dev/model" not in revision(POOL, 1)["metadata"]["labels"]


def latest_bodies(revisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bodies that are read from revisions that arrive one by one."""
    latest = LatestRevisions()
    for revision in revisions:
        latest.add([revision])
    return latest.bodies()


@pytest.mark.parametrize("name", CASES)
def test_every_revision_is_read_back_as_it_was(name: str) -> None:
    case = read_case(name)
    for resource in (case.pool, *case.members):
        (body,) = latest_bodies([controller_revision(case.pool, resource, ControllerRevision("r", 1))])
        parsed, problems = parse_body(body)
        assert problems == []
        assert parsed is not None
        assert (parsed.identity, parsed.metadata.uid) == (resource.identity, resource.metadata.uid)
        assert parsed.spec == resource.spec


def test_a_null_that_was_declared_is_read_back() -> None:
    text = (
        "{apiVersion: argosy.dev/v1alpha1, kind: ServingPool, metadata: {name: p}, "
        "spec: {runtime: {podTemplate: {spec: {securityContext: {runAsUser: null}}}}}}"
    )
    (pool,), _ = parse_documents(text, "f")
    (body,) = latest_bodies([revision(pool, 1)])
    assert body["spec"]["runtime"]["podTemplate"]["spec"] == {"securityContext": {"runAsUser": None}}


def test_of_every_resource_the_newest_revision_counts() -> None:
    bodies = latest_bodies([revision(model(version=2), 10), revision(model(version=1), 9), revision(model("u2"), 1)])
    assert [(body["metadata"]["uid"], body["spec"]["version"]) for body in bodies] == [("u1", 2), ("u2", 1)]


@pytest.mark.parametrize(
    "change",
    [{"data": None}, {"data": {}}, {"data": "text"}, {"metadata": {"name": "x", "namespace": "n"}}],
)
def test_what_is_no_revision_of_ours_is_passed_over(change: dict[str, Any]) -> None:
    assert latest_bodies([{**revision(model(), 1), **change}]) == []
    stranger = revision(model(), 1)
    stranger["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    assert latest_bodies([stranger]) == []
