"""Nodes whose labels and counts cannot be: each is refused with the field, at once."""

import time
from typing import Any

import pytest

from argosy.planning.nodes.parse import MOST_GPUS, MOST_MIB, BadNodeError, node_of

LABELS = {
    "nvidia.com/gpu.memory": "81920",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
}


def body(offered: str = "2", mig: str = "", **labels: str) -> dict[str, Any]:
    """Return a Node with GPUs; labels by the part of their name after `nvidia.com/`, with `_` for dots."""
    own = {f"nvidia.com/{name.replace('_', '.')}": text for name, text in labels.items()}
    slices = {"nvidia.com/mig-1g.10gb": mig} if mig else {}
    memory = {"nvidia.com/mig-1g.10gb.memory": "9728"} if mig else {}
    amounts = {"nvidia.com/gpu": offered, **slices}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"metadata": {"name": "a", "labels": {**LABELS, **memory, **own}}, "status": status}


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ({"gpu_memory": "0"}, "gpu.memory"),
        ({"gpu_memory": "-1"}, "gpu.memory"),
        ({"gpu_memory": "Unknown"}, "gpu.memory"),
        ({"gpu_memory": str(MOST_MIB + 1)}, "gpu.memory"),
        ({"gpu_memory": "9" * 60}, "gpu.memory"),
        ({"gpu_count": "-2"}, "gpu.count"),
        ({"gpu_count": "1000000000"}, "gpu.count"),
        ({"gpu_compute_major": "Unknown"}, "gpu.compute.major"),
        ({"gpu_compute_minor": "[N/A]"}, "gpu.compute.minor"),
        ({"gpu_compute_major": "1000"}, "gpu.compute.major"),
    ],
)
def test_a_label_that_cannot_be_is_named(labels: dict[str, str], field: str) -> None:
    with pytest.raises(BadNodeError) as refused:
        node_of(body(**labels))
    assert str(refused.value).startswith(f"metadata.labels[nvidia.com/{field}]: ")


@pytest.mark.parametrize("count", ["1000000000", "9" * 5000, str(MOST_GPUS + 1)])
def test_a_count_that_no_node_has_is_refused_at_once(count: str) -> None:
    began = time.process_time()
    for bad in (body(count), body(mig=count)):
        with pytest.raises(BadNodeError, match=rf"nvidia.com/.*must be {MOST_GPUS} at most"):
            node_of(bad)
    assert time.process_time() - began < 1


def test_the_most_that_a_node_may_have_is_read() -> None:
    assert len(node_of(body(str(MOST_GPUS))).gpus) == MOST_GPUS
    assert node_of(body()).compute_capability == "9.0"
