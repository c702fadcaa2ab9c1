"""`argosy plan --cluster` on a real API server: resources, nodes and servers are read, and nothing is written."""

from datetime import UTC, datetime

from e2e.cluster import Cluster
from e2e.cluster.standins.fake import fake_nodes
from e2e.cluster.standins.gpus import Gpus
from tests.operator.cluster.harness import Declared, Requests, watching

from argosy.cli.planning.built_plan import built_plan
from argosy.cli.planning.fleet.cluster import listed_snapshot
from argosy.cluster.client.connection import Connection


async def test_a_plan_starts_from_the_servers_of_the_cluster(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str, requests: Requests
) -> None:
    nodes = fake_nodes(cluster, 2, Gpus(2), prefix=f"n{namespace}-")
    async with watching(connection, namespace) as watched:
        await declared.apply(watched, declared.objects("pool-0", gpus=(1,), node=nodes[1]))
    requests.seen.clear()
    snapshot = await listed_snapshot(connection, (namespace,))
    assert requests.writes() == [] or {verb for verb, _, _ in requests.writes()} == {"get"}
    (server,) = snapshot.pool(declared.pool.key).servers
    assert (server.name, server.node, server.gpus) == ("pool-0", nodes[1], (1,))
    plan = built_plan(snapshot, datetime.now(UTC))[0].plan
    (planned,) = next(pool for pool in plan.pools if pool.pool == declared.pool.key).servers
    assert (planned.name, planned.node, planned.gpus) == ("pool-0", nodes[1], (1,))
