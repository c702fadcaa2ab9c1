"""A placeholder's Pods ask for what a server's Pod would, are bound to no planned node, and are in no one's way."""

import json
from dataclasses import replace
from typing import Any

from tests.operator.planning.declared import pool
from tests.operator.render.workloads.cases import IMAGES
from tests.operator.render.workloads.restricted import broken

from argosy.planning.provisioning.exclusions import MOST_NAMED
from argosy.planning.provisioning.placeholders import Placeholder
from argosy.render.workloads import Cluster, object_identity, owners, placeholder

NAME = "p-placeholder-k00000000"
TWO = Placeholder(NAME, 2, ("NVIDIA-A10", "NVIDIA-H100-80GB-HBM3"), 3, ("chat", "embedder"), ("a", "b"))
POOL = pool(
    metadata={"uid": "pool-uid"},
    nodeSelector={"gpu": "yes"},
    tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
    runtime={
        "podTemplate": {
            "metadata": {"labels": {"team": "search"}},
            "spec": {
                "priorityClassName": "important",
                "imagePullSecrets": [{"name": "registry"}],
                "containers": [{"name": "server", "resources": {"requests": {"cpu": "4", "memory": "32Gi"}}}],
            },
        }
    },
)


def rendered(desired: Placeholder = TWO) -> Any:
    images, cluster = replace(IMAGES, placeholder="example.com/pause:1"), Cluster(placeholder_priority_class="last")
    return placeholder(POOL, desired, images, cluster)


def affinity(desired: Placeholder) -> Any:
    return rendered(desired)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]


def test_its_pods_ask_for_what_a_server_would_ask_for_where_the_pool_selects_nodes() -> None:
    spec = rendered()["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "example.com/pause:1"
    assert container["resources"] == {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"nvidia.com/gpu": "2"}}
    assert spec["nodeSelector"] == {"gpu": "yes"}
    labelled = rendered(replace(TWO, labels=(("disk", "ssd"),)))["spec"]["template"]["spec"]
    assert labelled["nodeSelector"] == {"disk": "ssd", "gpu": "yes"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_it_gives_way_to_everything_at_once() -> None:
    spec = rendered()["spec"]["template"]["spec"]
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == ("last", 0)
    metadata = rendered()["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}


def test_its_pods_are_restricted_and_have_no_token() -> None:
    spec = rendered()["spec"]["template"]["spec"]
    assert broken(spec) == []
    assert spec["automountServiceAccountToken"] is False


def test_only_new_nodes_with_a_product_that_would_do_take_it_and_the_smallest_is_preferred() -> None:
    (term,) = affinity(TWO)["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A10", "NVIDIA-H100-80GB-HBM3"]},
        {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["a", "b"]},
    ]
    (preferred,) = affinity(TWO)["preferredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = preferred["preference"]["matchExpressions"]
    assert expression["values"] == ["NVIDIA-A10"]


def test_a_node_of_a_full_zone_or_of_none_does_not_take_it() -> None:
    zone = "topology.kubernetes.io/zone"
    desired = Placeholder(NAME, 2, (), 1, ("chat",), domains=((zone, ("x",)), ("rack", ())))
    (term,) = affinity(desired)["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": zone, "operator": "Exists"},
        {"key": zone, "operator": "NotIn", "values": ["x"]},
        {"key": "rack", "operator": "Exists"},
    ]


def test_without_a_product_or_a_node_there_is_no_such_rule() -> None:
    assert affinity(replace(TWO, products=(), hosts=())) == {}
    one = affinity(replace(TWO, products=("NVIDIA-A10",)))
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in one


def test_services_and_budgets_of_the_pool_do_not_select_its_pods() -> None:
    labels = rendered()["spec"]["template"]["metadata"]["labels"]
    assert "argosy.dev/pool" not in labels
    assert (labels["argosy.dev/placeholder"], labels["team"]) == ("p", "search")
    assert rendered()["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_it_belongs_to_the_pool_and_names_what_waits() -> None:
    result = rendered()
    assert owners([result]) == {object_identity(result): "ServingPool default/p"}
    assert result["metadata"]["annotations"] == {"argosy.dev/waiting": "chat, embedder"}
    assert result["spec"]["replicas"] == 3


def test_another_number_of_pods_leaves_those_that_wait_and_other_nodes_make_all_of_them_again() -> None:
    before = rendered()["spec"]
    assert rendered(replace(TWO, count=1, groups=("chat",)))["spec"]["template"] == before["template"]
    assert rendered(replace(TWO, hosts=("a", "b", "c")))["spec"]["template"] != before["template"]
    assert before["strategy"] == {"type": "Recreate"}


def test_a_placeholder_that_names_as_many_nodes_as_it_may_stays_small() -> None:
    names = tuple(f"{at:02}-{'n' * 60}" for at in range(MOST_NAMED))
    assert len(json.dumps(rendered(replace(TWO, hosts=names)))) < 8 << 10
