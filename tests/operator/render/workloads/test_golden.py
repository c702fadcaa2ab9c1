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
    identities = [object_identity(item) for item in objects]
    assert len(set(identities)) == len(identities)
    locations = [ORDER.index(item["kind"]) for item in objects]
    assert locations == sorted(locations)


@pytest.mark.parametrize("name", CASES)
def test_every_object_has_an_owner_that_reports_its_refusal(name: str) -> None:
    case = read_case(name)
    uids = {item.identity: item.metadata.uid for item in (case.pool, *case.members)}
    reported = owners(case.objects())
    for item in case.objects():
        owner = reported[object_identity(item)]
        (reference,) = item["metadata"]["ownerReferences"]
        assert reference["uid"] == uids[owner]
        is_members = item["kind"] == "Service" and "argosy.dev/model" in item["metadata"]["labels"]
        assert (owner == case.pool.identity) is not is_members


@pytest.mark.parametrize("name", CASES)
def test_what_was_decided_can_be_read_back(name: str) -> None:
    case = read_case(name)
    maps = [item for item in case.of_kind("ConfigMap") if "data" in item]
    assert len(maps) == len(case.servers)
    for item, server in zip(maps, case.servers, strict=True):
        assert parse_repository(item["data"]["repository.json"]) == server.repository
        current = parse_placement(server.plan.name, item["metadata"]["annotations"]["argosy.dev/placement"])
        assert (current.node, current.gpus) == (server.plan.node, server.plan.gpus)
        assert current.placed == {placement.model: placement.gpus for placement in server.plan.placements}
        assert current.needs == server.plan.needs


def test_a_placement_of_an_older_version_has_no_needs() -> None:
    current = parse_placement("pool-0", '{"node": "n", "gpus": [0], "placed": {"m": [0]}}')
    assert (current.placed, current.needs) == ({"m": (0,)}, {})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"node": "", "gpus": [], "placed": {}}', '{"node": "n", "gpus": [-1], "placed": {}}',
     '{"node": "n", "gpus": [true], "placed": {}}', '{"node": "n", "gpus": "0", "placed": {}}',
     '{"node": "n", "gpus": [0], "placed": []}', '{"node": "n", "gpus": [0], "placed": {"m": 0}}',
     '{"node": 1, "gpus": [], "placed": {}}', '{"node": "n", "gpus": [0], "placed": {"m": [0]}, "needs": []}',
     '{"node": "n", "gpus": [0], "placed": {"m": [0]}, "needs": {"m": [1]}}',
     '{"node": "n", "gpus": [0], "placed": {"m": [0]}, "needs": {"m": [1, "2"]}}'],
)  # fmt: skip
def test_a_placement_edited_by_hand_is_named_with_its_server(text: str) -> None:
    with pytest.raises(ValueError, match=r"argosy\.dev/placement of pool-0 .* is placed again"):
        parse_placement("pool-0", text)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_what_a_gitops_tool_would_read(name: str) -> None:
    objects = read_case(name).objects()
    assert list(yaml.safe_load_all(as_text(objects))) == list(objects)


def test_a_suspended_pool_keeps_what_is_not_a_servers() -> None:
    kinds = [object_identity(item).replace(" serving/", " ") for item in read_case("suspended").objects()]
    assert kinds == [
        "Service asleep-pool", "Service dreamer", "NetworkPolicy asleep", "PodDisruptionBudget asleep",
    ]  # fmt: skip
