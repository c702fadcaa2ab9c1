"""What is known of our objects, whatever comes first: the answer to an apply, or the watch's word of it."""

from typing import Any

import pytest

from argosy.cluster.cache.fingerprint import Shapes, digest
from argosy.cluster.cache.indexer import Indexer, PoolLabel
from argosy.cluster.client.kinds import SERVICE

KEY = ("team", "embedder")
LABELS = {"app.kubernetes.io/managed-by": "argosy", "argosy.dev/pool": "gpus"}
DESIRED = {"metadata": {"name": "embedder", "namespace": "team", "labels": LABELS}, "spec": {"port": 1}}
DIGEST = digest(DESIRED)


def live(version: int, port: int = 1, uid: str = "u", **metadata: Any) -> dict[str, Any]:
    result = {"name": "embedder", "namespace": "team", "labels": LABELS, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**result, **metadata}, "spec": {"port": port, "clusterIP": "10.0.0.1"}}


class Scene:
    def __init__(self) -> None:
        self.told: list[PoolLabel] = []
        self.indexer = Indexer(SERVICE, self.told.append)
        self.shape = Shapes().of_object(DESIRED)

    def apply(self, body: dict[str, Any]) -> None:
        self.indexer.applied(body, DIGEST, self.shape, DESIRED)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_our_own_apply_is_no_news(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.seen(live(5))
    scene.indexer.seen(live(6, generation=2))
    assert scene.told == []
    assert scene.indexer.is_as_applied(KEY, DIGEST)
    assert not scene.indexer.is_as_applied(KEY, digest("another"))


def test_the_watch_may_be_faster_than_the_answer(scene: Scene) -> None:
    scene.indexer.seen(live(5))
    scene.apply(live(5))
    assert scene.indexer.is_as_applied(KEY, DIGEST)


def test_an_edit_is_drift_also_when_it_was_seen_before_the_answer(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.seen(live(6, port=22))
    assert scene.told == [("team", "gpus")]
    assert not scene.indexer.is_as_applied(KEY, DIGEST)
    scene.apply(live(7))
    assert scene.indexer.is_as_applied(KEY, DIGEST)

    scene.indexer.seen(live(9, port=22))
    scene.apply(live(8))  # the answer to what was sent before that edit
    assert not scene.indexer.is_as_applied(KEY, DIGEST)


def test_another_writer_may_be_seen_before_the_answer(scene: Scene) -> None:
    with scene.indexer.expecting(KEY, scene.shape):
        scene.indexer.seen(live(6, annotations={"theirs": "yes"}))
        scene.apply(live(5))
    assert scene.indexer.is_as_applied(KEY, DIGEST)


def test_an_older_word_is_not_believed(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.seen(live(4, port=22))
    assert scene.indexer.is_as_applied(KEY, DIGEST)
    assert scene.told == []


def test_a_new_object_of_the_name_was_never_applied(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.gone(live(6, uid="another"))
    assert scene.indexer.is_as_applied(KEY, DIGEST)
    scene.indexer.seen(live(7, uid="new"))
    assert not scene.indexer.is_as_applied(KEY, DIGEST)
    assert scene.told == [("team", "gpus")]


def test_what_a_list_no_longer_has_is_gone(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.only("other", set())
    assert scene.indexer.get(KEY) is not None
    scene.indexer.only("", {KEY})
    assert scene.told == []
    scene.indexer.only("team", set())
    assert scene.indexer.get(KEY) is None
    assert scene.told == [("team", "gpus")]
    assert list(scene.indexer.pools()) == []


def test_a_label_may_move_an_object_to_another_pool(scene: Scene) -> None:
    scene.apply(live(5))
    scene.indexer.seen(live(6, labels={**LABELS, "argosy.dev/pool": "cpus"}))
    assert sorted(scene.told) == [("team", "cpus"), ("team", "gpus")]
    assert [key for key, _ in scene.indexer.of_pool(("team", "cpus"))] == [KEY]
    assert scene.indexer.of_pool(("team", "gpus")) == []


def test_what_others_wrote_and_the_answer_brings_is_reported(scene: Scene) -> None:
    scene.indexer.seen(live(5))
    scene.told.clear()
    with scene.indexer.expecting(KEY, scene.shape):
        scene.apply(live(7, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert scene.told == [("team", "gpus")]
    scene.indexer.seen(live(6, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert scene.told == [("team", "gpus")]


def test_a_detail_that_the_answer_brings_is_reported() -> None:
    reported: list[PoolLabel] = []
    indexer = Indexer(SERVICE, reported.append, lambda body: body["spec"].get("state"))
    shape = Shapes().of_object(DESIRED)
    indexer.applied(live(5), DIGEST, shape, DESIRED)
    assert reported == []
    written = live(7)
    written["spec"]["state"] = "loaded"
    indexer.applied(written, DIGEST, shape, DESIRED)
    assert reported == [("team", "gpus")]


@pytest.mark.parametrize("how", ["gone", "only"])
def test_what_is_deleted_before_the_answer_is_read_does_not_come_back(scene: Scene, how: str) -> None:
    with scene.indexer.expecting(KEY, scene.shape):
        scene.indexer.seen(live(5))
        scene.told.clear()
        if how == "gone":
            scene.indexer.gone(live(6))
        else:
            scene.indexer.only("", set())
        scene.told.clear()
        scene.apply(live(5))
    assert scene.indexer.get(KEY) is None
    assert not scene.indexer.is_as_applied(KEY, DIGEST)
    assert scene.told == [("team", "gpus")]
    with scene.indexer.expecting(KEY, scene.shape):
        scene.apply(live(9, uid="new"))
    assert scene.indexer.is_as_applied(KEY, DIGEST)
