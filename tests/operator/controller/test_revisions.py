"""What becomes of histories in a round: which ControllerRevisions are written, which stay, which go."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.operator.controller.bodies import ensemble, model, pool
from tests.operator.controller.fakes import FakeCache, FakeStatusListener, FakeWriter
from tests.operator.controller.test_reconciler import KEY, NOW, observed

from argosy.api.values.identity import Identity, PoolKey
from argosy.cluster.apply.applier import Applied
from argosy.cluster.cache.server_objects import of_revision
from argosy.controller.rendering.revisions import RevisionNames
from argosy.controller.resources.parsed_body import parsed_body
from argosy.controller.resources.store import Store
from argosy.controller.rounds.reconciler import Reconciler
from argosy.render.workloads import Cluster, Images, KubernetesObject, object_identity


@dataclass(slots=True)
class FakeHistory(FakeWriter):
    """A cluster that stores the written ControllerRevisions of the namespace `n`, and updates a cache with them."""

    cache: FakeCache = field(default_factory=observed)
    stands: dict[str, KubernetesObject] = field(default_factory=dict)

    async def apply(self, pool: PoolKey, objects: Sequence[KubernetesObject], *rest: Any) -> Applied:
        """Store the revisions among the objects, and of the stored ones those in `keep`."""
        done = await FakeWriter.apply(self, pool, objects, *rest)
        label = pool.partition("/")[2]
        mine = {name for name, stand in self.stands.items() if stand["metadata"]["labels"]["argosy.dev/pool"] == label}
        stay = {name: stand for name, stand in self.stands.items() if name in self.keep or name not in mine}
        now = {object_identity(item): item for item in objects if item["kind"] == "ControllerRevision"}
        self.stands = stay | now
        self.cache.histories = {}
        for stand in self.stands.values():
            uid = stand["metadata"]["ownerReferences"][0]["uid"]
            self.cache.histories.setdefault(uid, []).append(of_revision(stand))
        return done

    def versions(self, name: str = "m") -> list[int]:
        """Return the model's versions, that of the newest revision first."""
        mine = [stand for stand in self.stands.values() if stand["metadata"]["ownerReferences"][0]["name"] == name]
        return [item["data"]["spec"]["version"] for item in sorted(mine, key=lambda item: -int(item["revision"]))]

    @property
    def written(self) -> set[str]:
        """The revisions that were written in the last round."""
        return {item for item in self.objects if item.startswith("ControllerRevision")}


@dataclass(slots=True)
class Process:
    """An operator's process: what it read, and what it remembers."""

    cluster: FakeHistory = field(default_factory=FakeHistory)
    store: Store = field(default_factory=Store)
    images: Images = field(default_factory=lambda: Images("a", "b", "c"))
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        offered, listener = Cluster("policy/v1"), FakeStatusListener()
        cache = self.cluster.cache
        self.reconciler = Reconciler(self.store, cache, self.cluster, listener, self.images, offered, lambda: NOW)

    async def declare(self, *bodies: dict[str, Any], key: PoolKey = KEY) -> None:
        """Declare these resources and reconcile once."""
        for body in bodies:
            self.store.put(parsed_body(body))
        await self.reconciler.reconcile(key)


async def test_every_revision_that_is_acted_upon_is_written_once() -> None:
    process = Process()
    await process.declare(pool(), model())
    assert len(process.cluster.written) == 2  # the pool's and the model's
    for _ in range(2):
        await process.reconciler.reconcile(KEY)
        assert process.cluster.written == set()
    await process.declare(model(generation=2, version=2))
    assert len(process.cluster.written) == 1
    assert process.cluster.versions() == [2, 1]


async def test_another_process_goes_on_from_the_same_history() -> None:
    process = Process()
    await process.declare(pool(), model())
    again = Process(process.cluster)
    await again.declare(pool(), model())
    assert process.cluster.written == set()
    await again.declare(model(generation=2, version=2))
    assert process.cluster.versions() == [2, 1]


async def test_an_earlier_revision_that_returns_is_the_newest() -> None:
    process = Process()
    await process.declare(pool(), model())
    await process.declare(model(generation=2, version=2))
    await process.declare(model(generation=3, version=1))
    assert process.cluster.versions() == [1, 2]


async def test_a_wrong_revision_is_none_and_takes_none_away() -> None:
    process = Process()
    await process.declare(pool(), model())
    await process.declare(model(generation=2, version=0))
    await process.declare(model(generation=3, storageUri="nowhere"))
    assert process.cluster.versions() == [1]
    await process.declare(model(generation=4, version=4))
    assert process.cluster.versions() == [4, 1]


async def test_what_does_not_fit_with_others_keeps_its_history() -> None:
    process = Process()
    await process.declare(pool(), model(), ensemble("e", "p"))
    await process.declare(model(generation=2, outputs=[{"name": "z", "dataType": "TYPE_FP32", "dims": [1]}]))
    assert process.cluster.versions("e") == [1]
    assert process.cluster.written == {item for item in process.cluster.written if "/m-" in item}


async def test_no_more_earlier_revisions_are_retained_than_are_requested() -> None:
    process = Process()
    await process.declare(pool())
    for version in range(1, 5):
        await process.declare(model(generation=version, version=version, revisionHistoryLimit=2))
    assert process.cluster.versions() == [4, 3, 2]
    await process.declare(model(generation=5, version=4, revisionHistoryLimit=0))
    assert process.cluster.versions() == [4]


async def test_what_another_pool_serves_by_now_keeps_its_history() -> None:
    process = Process()
    await process.declare(pool(), pool("q"), model())
    await process.declare(model(generation=2, poolRef={"name": "q"}), key=PoolKey("n/q"))
    assert process.cluster.versions() == [1, 1]
    await process.reconciler.reconcile(KEY)
    assert process.cluster.versions() == [1, 1]


async def test_the_history_of_what_is_gone_goes() -> None:
    process = Process()
    await process.declare(pool(), model())
    process.store.end(Identity("InferenceModel n/m"), "uid-m")
    await process.reconciler.reconcile(KEY)
    assert process.cluster.versions() == []
    assert len(process.cluster.stands) == 1


def test_names_of_revisions_live_as_long_as_the_revisions() -> None:
    names = RevisionNames()
    revisions = [parsed_body(model(f"m{number}", version=number + 1)).newest for number in range(10)]
    reported = [names.of(revision) for revision in revisions]
    assert [names.of(revision) for revision in revisions] == reported
    assert len(set(reported)) == len(names) == 10
    del revisions[1:]
    gc.collect()
    assert len(names) == 1
    assert names.of(revisions[0]) == reported[0]
