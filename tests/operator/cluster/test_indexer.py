"""The index of our objects, whether the response to an apply or the watch's event comes first."""

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


class RecordedIndexer:
    """An indexer of one Service, and the changes that it reports."""

    def __init__(self) -> None:
        self.reported: list[PoolLabel] = []
        self.indexer = Indexer(SERVICE, self.reported.append)
        self.shape = Shapes().of_object(DESIRED)

    def apply(self, body: dict[str, Any]) -> None:
        self.indexer.applied(body, DIGEST, self.shape, DESIRED)


@pytest.fixture
def recorded() -> RecordedIndexer:
    return RecordedIndexer()


def test_our_own_apply_is_no_news(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.update(live(5))
    recorded.indexer.update(live(6, generation=2))
    assert recorded.reported == []
    assert recorded.indexer.is_as_applied(KEY, DIGEST)
    assert not recorded.indexer.is_as_applied(KEY, digest("another"))


def test_the_watch_may_be_faster_than_the_answer(recorded: RecordedIndexer) -> None:
    recorded.indexer.update(live(5))
    recorded.apply(live(5))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)


def test_an_edit_is_drift_also_when_it_was_seen_before_the_answer(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.update(live(6, port=22))
    assert recorded.reported == [("team", "gpus")]
    assert not recorded.indexer.is_as_applied(KEY, DIGEST)
    recorded.apply(live(7))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)

    recorded.indexer.update(live(9, port=22))
    recorded.apply(live(8))  # the answer to what was sent before that edit
    assert not recorded.indexer.is_as_applied(KEY, DIGEST)


def test_another_writer_may_be_seen_before_the_answer(recorded: RecordedIndexer) -> None:
    with recorded.indexer.expecting(KEY, recorded.shape):
        recorded.indexer.update(live(6, annotations={"theirs": "yes"}))
        recorded.apply(live(5))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)


def test_an_older_version_is_ignored(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.update(live(4, port=22))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)
    assert recorded.reported == []


def test_a_new_object_of_the_name_was_never_applied(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.delete(live(6, uid="another"))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)
    recorded.indexer.update(live(7, uid="new"))
    assert not recorded.indexer.is_as_applied(KEY, DIGEST)
    assert recorded.reported == [("team", "gpus")]


def test_what_a_list_no_longer_has_is_gone(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.retain("other", set())
    assert recorded.indexer.get(KEY) is not None
    recorded.indexer.retain("", {KEY})
    assert recorded.reported == []
    recorded.indexer.retain("team", set())
    assert recorded.indexer.get(KEY) is None
    assert recorded.reported == [("team", "gpus")]
    assert list(recorded.indexer.pools()) == []


def test_a_label_may_move_an_object_to_another_pool(recorded: RecordedIndexer) -> None:
    recorded.apply(live(5))
    recorded.indexer.update(live(6, labels={**LABELS, "argosy.dev/pool": "cpus"}))
    assert sorted(recorded.reported) == [("team", "cpus"), ("team", "gpus")]
    assert [key for key, _ in recorded.indexer.of_pool(("team", "cpus"))] == [KEY]
    assert recorded.indexer.of_pool(("team", "gpus")) == []


def test_what_others_wrote_and_the_answer_brings_is_reported(recorded: RecordedIndexer) -> None:
    recorded.indexer.update(live(5))
    recorded.reported.clear()
    with recorded.indexer.expecting(KEY, recorded.shape):
        recorded.apply(live(7, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert recorded.reported == [("team", "gpus")]
    recorded.indexer.update(live(6, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert recorded.reported == [("team", "gpus")]


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


@pytest.mark.parametrize("how", ["delete", "retain"])
def test_what_is_deleted_before_the_answer_is_read_does_not_come_back(recorded: RecordedIndexer, how: str) -> None:
    with recorded.indexer.expecting(KEY, recorded.shape):
        recorded.indexer.update(live(5))
        recorded.reported.clear()
        if how == "delete":
            recorded.indexer.delete(live(6))
        else:
            recorded.indexer.retain("", set())
        recorded.reported.clear()
        recorded.apply(live(5))
    assert recorded.indexer.get(KEY) is None
    assert not recorded.indexer.is_as_applied(KEY, DIGEST)
    assert recorded.reported == [("team", "gpus")]
    with recorded.indexer.expecting(KEY, recorded.shape):
        recorded.apply(live(9, uid="new"))
    assert recorded.indexer.is_as_applied(KEY, DIGEST)
