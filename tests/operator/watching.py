"""What a simulated cluster says of a resource, and that nobody who asks for it notices a change."""

from tests.operator.planning.simulated_cluster import Cluster

from argosy.api import ConditionType, Resource


def message(cluster: Cluster, identity: str, kind: ConditionType = ConditionType.LOADED) -> str:
    assert cluster.outcome is not None
    condition = cluster.outcome.statuses[identity].condition(kind)
    assert condition is not None
    return f"{condition.reason}: {condition.message}"


def always_routed(cluster: Cluster, resources: list[Resource], names: set[str], rounds: int = 80) -> None:
    """Run rounds until all is settled, in each of which all of `names` are reached."""
    for _ in range(rounds):
        before = cluster.routed()
        cluster.tick(resources)
        after = cluster.routed()
        assert all(before[name] & after[name] for name in names)  # endpoints are told of in no order
    cluster.settle(resources)
