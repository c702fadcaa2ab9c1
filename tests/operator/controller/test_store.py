"""What is remembered of resources: which pools an event concerns, and what stands when a spec is wrong."""

from typing import Any

import pytest
from tests.operator.controller.bodies import ensemble, model, pool

from argosy.api import (
    Condition,
    ConditionStatus,
    ConditionType,
    InferenceModel,
    InferenceModelStatus,
    Reason,
    ServingPool,
)
from argosy.api.documents import parse_body
from argosy.api.values.identity import PoolKey
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.planning.history import ControllerRevision
from argosy.planning.nodes.cordons import UNCORDONED_AT
from argosy.render.workloads import LatestRevisions, controller_revision

STATUS = InferenceModelStatus(
    observed_generation=1,
    conditions=(
        Condition(
            type=ConditionType.READY,
            status=ConditionStatus.TRUE,
            reason=Reason.SERVING,
            last_transition_time="2026-01-01T00:00:00Z",
            observed_generation=1,
        ),
    ),
)


def with_status(body: dict[str, Any]) -> dict[str, Any]:
    """Return the same body with a status, as the API server has it after the status was written."""
    return {**body, "status": STATUS.model_dump(mode="json", by_alias=True, exclude_none=True)}


def test_an_event_concerns_the_pool_it_names_and_the_one_it_named() -> None:
    resources = Store()
    assert resources.put(parsed_body(pool())) == {"n/p"}
    assert resources.put(parsed_body(model())) == {"n/p"}
    assert resources.put(parsed_body(model(generation=2, poolRef={"name": "q"}))) == {"n/p", "n/q"}
    assert [resource.name for resource in resources.of_pool(PoolKey("n/p")).resources] == ["p"]
    assert [member.name for member in resources.of_pool(PoolKey("n/q")).members] == ["m"]
    assert resources.pools == {"n/p", "n/q"}
    assert resources.put(parsed_body(model(generation=3, poolRef={"name": "p"}))) == {"n/p", "n/q"}
    assert resources.pools == {"n/p"}


def test_what_we_wrote_ourselves_is_no_news() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    resources.wrote("InferenceModel n/m", STATUS)
    assert resources.put(parsed_body(with_status(model()))) == frozenset()
    assert resources.status("InferenceModel n/m") == STATUS


def test_a_status_that_somebody_else_wrote_is_news() -> None:
    resources = Store()
    resources.put(parsed_body(with_status(model())))
    assert resources.put(parsed_body(model())) == {"n/p"}


def test_an_annotation_that_lifts_cordons_is_news() -> None:
    resources, body = Store(), pool()
    resources.put(parsed_body(body))
    other, lifts = (
        {**body["metadata"], "annotations": {key: "2026-01-01T00:00:00Z"}} for key in ("x/y", UNCORDONED_AT)
    )
    assert resources.put(parsed_body({**body, "metadata": other})) == frozenset()
    assert resources.put(parsed_body({**body, "metadata": lifts})) == {"n/p"}


def test_a_new_spec_is_news() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    assert resources.put(parsed_body(model())) == frozenset()
    assert resources.put(parsed_body(model(generation=2, version=2))) == {"n/p"}
    (member,) = resources.of_pool(PoolKey("n/p")).members
    assert member.spec.version == 2


def test_a_wrong_spec_leaves_the_last_valid_revision() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    assert resources.put(parsed_body(model(generation=2, version=0))) == {"n/p"}
    declared = resources.of_pool(PoolKey("n/p"))
    (member,) = declared.members
    assert (member.spec.version, member.metadata.generation) == (1, 2)
    assert [problem.path for problem in declared.problems] == ["spec.version"]
    assert declared.faulty == ()
    resources.put(parsed_body(model(generation=3, version=3)))
    assert resources.of_pool(PoolKey("n/p")).problems == ()


def test_a_wrong_spec_that_names_another_pool_does_not_move_what_is_served() -> None:
    resources = Store()
    for body in (pool("p"), pool("q"), model()):
        resources.put(parsed_body(body))
    assert resources.put(parsed_body(model(generation=2, poolRef={"name": "q"}, version="nonsense"))) == {"n/p"}
    assert [member.name for member in resources.of_pool(PoolKey("n/p")).members] == ["m"]
    assert [problem.resource for problem in resources.of_pool(PoolKey("n/p")).problems] == ["InferenceModel n/m"]
    assert resources.of_pool(PoolKey("n/q")).members == ()
    assert resources.of_pool(PoolKey("n/q")).problems == ()
    assert resources.put(parsed_body(model(generation=3, poolRef={"name": "q"}))) == {"n/p", "n/q"}
    assert [member.name for member in resources.of_pool(PoolKey("n/q")).members] == ["m"]


def test_a_pool_that_no_one_asks_for_any_more_is_forgotten() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    resources.put(parsed_body(model(generation=2, poolRef={"name": "q"})))
    assert resources.pools == {"n/q"}


@pytest.mark.parametrize("spec", [{"version": "two"}, {"storageUri": "ftp://x"}, {"poolRef": 7}])
def test_a_spec_that_never_was_valid_has_a_name_and_its_problems(spec: dict[str, Any]) -> None:
    resources = Store()
    touched = resources.put(parsed_body(model(**spec)))
    if spec.get("poolRef") == 7:
        assert touched == frozenset()
        return
    declared = resources.of_pool(PoolKey("n/p"))
    assert declared.members == ()
    (faulty,) = declared.faulty
    assert (faulty.identity, faulty.metadata.uid) == ("InferenceModel n/m", "uid-m")
    assert {problem.resource for problem in declared.problems} == {"InferenceModel n/m"}


def test_a_recreated_namesake_does_not_inherit_the_last_revision() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    resources.put(parsed_body(model(uid="another", version=0)))
    assert resources.of_pool(PoolKey("n/p")).members == ()


def test_an_old_deletion_does_not_drop_a_recreated_namesake() -> None:
    resources = Store()
    resources.put(parsed_body(model(uid="new")))
    assert resources.end("InferenceModel n/m", "old") == frozenset()
    assert resources.end("InferenceModel n/m", "new") == {"n/p"}
    assert resources.pools == frozenset()
    assert resources.count == 0


def test_an_outdated_event_does_not_bring_back_what_is_gone() -> None:
    resources = Store()
    resources.put(parsed_body(model()))
    assert resources.end("InferenceModel n/m", "uid-m") == {"n/p"}
    assert resources.put(parsed_body(model(generation=2))) == frozenset()
    assert resources.count == 0
    assert resources.put(parsed_body(model(uid="new"))) == {"n/p"}
    assert resources.has("InferenceModel n/m", "new")
    assert not resources.has("InferenceModel n/m", "uid-m")


def test_a_status_that_cannot_be_read_counts_as_none() -> None:
    resources = Store()
    resources.put(parsed_body({**model(), "status": {"conditions": "hand-made"}}))
    (member,) = resources.of_pool(PoolKey("n/p")).members
    assert member.status is None


def test_namesakes_may_be_named_like_a_variant() -> None:
    variants = [{"name": "few", "maxConcurrency": 2}, {"name": "many"}]
    resources = Store()
    resources.put(parsed_body(model("chat", variants=variants, routing={"placement": "Separate"})))
    resources.put(parsed_body(model("chat--few", poolRef={"name": "q"})))
    resources.put(parsed_body(model("chat--none", poolRef={"name": "q"})))
    assert [namesake.identity for namesake in resources.namesakes(PoolKey("n/p"))] == ["InferenceModel n/chat--few"]
    assert [namesake.identity for namesake in resources.namesakes(PoolKey("n/q"))] == ["InferenceModel n/chat"]


def test_namesakes_are_of_the_other_kind_and_of_other_pools() -> None:
    resources = Store()
    resources.put(parsed_body(model("same")))
    resources.put(parsed_body(ensemble("same", "q")))
    resources.put(parsed_body(ensemble("other", "q")))
    assert [namesake.identity for namesake in resources.namesakes(PoolKey("n/p"))] == ["Ensemble n/same"]
    assert [namesake.identity for namesake in resources.namesakes(PoolKey("n/q"))] == ["InferenceModel n/same"]


def restored(*bodies: dict[str, Any]) -> Store:
    """Return the store of a process that reads these revisions from ControllerRevisions."""
    result, owner = Store(), ServingPool.model_validate({"metadata": {"name": "p", "namespace": "n", "uid": "uid-p"}})
    for body in bodies:
        resource, problems = parse_body(body)
        assert problems == []
        assert resource is not None
        latest = LatestRevisions()
        latest.add([controller_revision(owner, resource, ControllerRevision("r", 1))])
        for revision in latest.bodies():
            result.restore(parsed_body(revision))
    return result


def test_the_last_valid_revision_outlives_the_process() -> None:
    second = restored(pool(), model())
    assert second.pools == frozenset()
    second.put(parsed_body(pool()))
    second.put(parsed_body(model(generation=2, version=0)))
    (member,) = second.of_pool(PoolKey("n/p")).members
    assert (member.spec.version, member.metadata.generation) == (1, 2)
    first = Store()
    first.put(parsed_body(model()))
    assert member.spec == first.of_pool(PoolKey("n/p")).members[0].spec
    assert second.of_pool(PoolKey("n/p")).restored["InferenceModel n/m"].spec == member.spec


def test_a_valid_revision_leaves_the_former_one_restorable() -> None:
    resources = restored(model())
    resources.put(parsed_body(model(generation=2, version=2)))
    (member,) = resources.of_pool(PoolKey("n/p")).members
    assert member.spec.version == 2
    (former,) = resources.of_pool(PoolKey("n/p")).restored.values()
    assert isinstance(former, InferenceModel)
    assert former.spec.version == 1


def test_the_revision_that_is_declared_is_not_retained_twice() -> None:
    resources = restored(model())
    resources.put(parsed_body(model(generation=2, revisionHistoryLimit=3)))
    assert resources.of_pool(PoolKey("n/p")).restored == {}


def test_a_restored_revision_replaces_no_namesake_or_valid_one() -> None:
    resources = restored(model(), model("other"))
    resources.put(parsed_body(model(uid="another", version=0)))
    assert resources.of_pool(PoolKey("n/p")).members == ()
    resources.put(parsed_body(model("other", generation=2, version=2)))
    (member,) = resources.of_pool(PoolKey("n/p")).members
    assert member.spec.version == 2


def test_a_former_revision_that_is_valid_no_more_is_none() -> None:
    resources = Store()
    resources.restore(parsed_body(model(version=0)))
    resources.put(parsed_body(model(generation=2, version=-1)))
    assert resources.of_pool(PoolKey("n/p")).members == ()
    assert [item.name for item in resources.of_pool(PoolKey("n/p")).faulty] == ["m"]


def test_a_resource_keeps_what_is_equal_when_it_is_reported_again() -> None:
    resources = Store()
    for generation in (1, 2):
        before = resources.members()
        resources.put(parsed_body(with_status(model(generation=generation))))
    (first,), (second,) = before, resources.members()
    assert second.metadata.generation == 2
    assert second.spec is first.spec
    assert second.status is first.status


def test_a_pod_template_with_true_for_1_is_a_new_spec() -> None:
    store = Store()
    for generation, read_only in ((1, 1), (2, True)):
        container = {"name": "server", "securityContext": {"readOnlyRootFilesystem": read_only}}
        body = pool(runtime={"podTemplate": {"spec": {"containers": [container]}}})
        body["metadata"]["generation"] = generation
        store.put(parsed_body(body))
    stored = store.of_pool(PoolKey("n/p")).every[0]
    assert isinstance(stored, ServingPool)
    assert stored.spec.runtime.pod_template.spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
