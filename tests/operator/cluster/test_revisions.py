"""ControllerRevisions on a real API server: taken, known by watch, read back, and only renumbered."""

from e2e.cluster import Cluster
from tests.operator.cluster.harness import Declared, declare, model_body, until, watching

from argosy.cluster.client.connection import Connection
from argosy.cluster.client.kinds import CONTROLLER_REVISION
from argosy.planning.history import ControllerRevision
from argosy.render.workloads import LatestRevisions, controller_revision, controller_revision_name, managed_selector


async def test_a_history_is_written_renumbered_read_back_and_cut(
    connection: Connection, cluster: Cluster, declared: Declared, namespace: str
) -> None:
    model = declare(cluster, model_body(namespace, "grown"))
    uid = model.metadata.uid
    newer = model.model_copy(update={"spec": model.spec.model_copy(update={"version": 2})})
    one, two = (
        ControllerRevision(controller_revision_name(model), 1),
        ControllerRevision(controller_revision_name(newer), 2),
    )
    bodies = [controller_revision(declared.pool, model, one), controller_revision(declared.pool, newer, two)]
    async with watching(connection, namespace) as watched:
        assert await declared.apply(watched, bodies) == ()
        assert sorted(watched.cache.revisions()[uid], key=lambda item: item.number) == [one, two]
    async with watching(connection, namespace) as watched:
        assert sorted(watched.cache.revisions()[uid], key=lambda item: item.number) == [one, two]
        back = controller_revision(declared.pool, model, ControllerRevision(one.name, 3))
        assert await declared.apply(watched, [back], f"ControllerRevision {namespace}/{two.name}") == ()
        assert set(watched.cache.revisions()[uid]) == {ControllerRevision(one.name, 3), two}
        latest = LatestRevisions()
        async for page in connection.pages(CONTROLLER_REVISION, namespace, {"labelSelector": managed_selector()}):
            latest.add(page["items"])
        (revision,) = latest.bodies()
        assert (revision["metadata"]["uid"], revision["spec"]["version"]) == (uid, 1)
        await declared.apply(watched, [back])
        await until("the other is gone", lambda: len(watched.cache.revisions()[uid]) == 1)
        assert watched.cache.revisions()[uid] == [ControllerRevision(one.name, 3)]
