"""Nodes as a watch reports them, without an API server."""

from typing import Any

from argosy.cluster.cache.node_cache import NodeCache

LABELS = {"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "2", "zone": "x"}


def body(labels: dict[str, str], ready: str = "True") -> dict[str, Any]:
    """Return a node with two GPUs."""
    return {
        "metadata": {"name": "a", "labels": labels},
        "status": {
            "capacity": {"nvidia.com/gpu": "2"},
            "allocatable": {"nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }


def test_a_node_whose_gpus_cannot_be_read_is_still_there_with_its_state() -> None:
    """GPU feature discovery removes its labels while it restarts."""
    reported: list[int] = []
    cache = NodeCache(lambda: reported.append(1))
    cache.update(body(LABELS))
    assert [(len(node.gpus), node.stale) for node in cache.all()] == [(2, False)]
    cache.update(body({"zone": "x"}))
    (node,) = cache.all()
    assert (node.gpus, node.stale, node.schedulable, node.ready, node.labels) == ((), True, False, True, {"zone": "x"})
    assert "nvidia.com/gpu.memory" in cache.errors["a"]
    assert cache.all()[0].fault == cache.errors["a"]
    cache.update(body({"zone": "x"}, ready="Unknown"))
    assert [node.ready for node in cache.all()] == [False]
    cache.update(body(LABELS))
    assert [(len(node.gpus), node.stale) for node in cache.all()] == [(2, False)]
    assert cache.errors == {}
    assert len(reported) == 4
    cache.retain("", ())
    assert cache.all() == ()
