"""Golden workloads: what comes out of each case, and what holds for all of them."""

import os

import pytest
import yaml
from tests.operator.render.workloads.cases import CASES, DATA, as_text, read_case

from argosy.render.workloads import object_identity, owners, parse_placement
from argosy_agent.contract.documents import parse_repository

ORDER = [
    "ServiceAccount", "Role", "RoleBinding", "ConfigMap",
    "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    text, expected = as_text(read_case(name).objects()), DATA / name / "expected" / "objects.yaml"
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("name", CASES)
def test_no_two_objects_are_one_and_every_one_comes_before_what_needs_it(name: str) -> None:
    objects = read_case(name).objects()
    identities = [object_identity(each) for each in objects]
    assert len(set(identities)) == len(identities)
    places = [ORDER.index(each["kind"]) for each in objects]
    assert places == sorted(places)


@pytest.mark.parametrize("name", CASES)
def test_every_object_has_an_owner_that_reports_its_refusal(name: str) -> None:
    case = read_case(name)
    uids = {each.identity: each.metadata.uid for each in (case.pool, *case.members)}
    told = owners(case.objects())
    for each in case.objects():
        owner = told[object_identity(each)]
        (reference,) = each["metadata"]["ownerReferences"]
        assert reference["uid"] == uids[owner]
        is_members = each["kind"] == "Service" and "argosy.dev/model" in each["metadata"]["labels"]
        assert (owner == case.pool.identity) is not is_members


@pytest.mark.parametrize("name", CASES)
def test_what_was_decided_can_be_read_back(name: str) -> None:
    case = read_case(name)
    maps = [each for each in case.of_kind("ConfigMap") if "data" in each]
    assert len(maps) == len(case.servers)
    for each, server in zip(maps, case.servers, strict=True):
        assert parse_repository(each["data"]["repository.json"]) == server.repository
        current = parse_placement(server.plan.name, each["metadata"]["annotations"]["argosy.dev/placement"])
        assert (current.node, current.gpus) == (server.plan.node, server.plan.gpus)
        assert current.placed == {each.model: each.gpus for each in server.plan.placements}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"node": "", "gpus": [], "placed": {}}', '{"node": "n", "gpus": [-1], "placed": {}}',
     '{"node": "n", "gpus": [true], "placed": {}}', '{"node": "n", "gpus": "0", "placed": {}}',
     '{"node": "n", "gpus": [0], "placed": []}', '{"node": "n", "gpus": [0], "placed": {"m": 0}}',
     '{"node": 1, "gpus": [], "placed": {}}'],
)  # fmt: skip
def test_a_placement_edited_by_hand_is_named_with_its_server(text: str) -> None:
    with pytest.raises(ValueError, match=r"argosy\.dev/placement of pool-0 .* is placed anew"):
        parse_placement("pool-0", text)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_what_a_gitops_tool_would_read(name: str) -> None:
    objects = read_case(name).objects()
    assert list(yaml.safe_load_all(as_text(objects))) == list(objects)


def test_a_suspended_pool_keeps_what_is_not_a_servers() -> None:
    kinds = [object_identity(each).replace(" serving/", " ") for each in read_case("suspended").objects()]
    assert kinds == [
        "Service asleep-pool", "Service dreamer", "NetworkPolicy asleep", "PodDisruptionBudget asleep",
    ]  # fmt: skip
