"""What tells of devices of DRA drivers, as watches report it, without an API server."""

from typing import Any

from tests.operator.planning.nodes.slices_v1 import divisible
from tests.operator.planning.nodes.test_dra import bare, names

from argosy.cluster.cache.device_cache import DeviceCache
from argosy.cluster.client.kinds import key_of


def claim(name: str, device: str, **labels: str) -> dict[str, Any]:
    """Return a ResourceClaim that has a device of the node `a`."""
    results = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "a", "device": device}]
    metadata = {"namespace": "n", "name": name, "labels": labels}
    return {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}


def test_nodes_have_what_is_published_and_not_what_others_have() -> None:
    heard: list[int] = []
    cache = DeviceCache(lambda: heard.append(1), lambda metadata: "ours" in (metadata.get("labels") or {}))
    assert cache.with_devices([bare()]) == (bare(),)
    for body in divisible(0):
        cache.slices.update(body)
    (node,) = cache.with_devices([bare()])
    assert node.schedulable
    cache.claims.update(claim("c", "gpu-0"))
    cache.claims.update(claim("mine", "gpu-0-mig-7g-80gb-0", ours="yes"))
    (node,) = cache.with_devices([bare()])
    assert {name for name, holder in names(node).items() if holder == "ResourceClaim n/c"} == {"gpu-0"}
    rule = {"deviceSelector": {"device": "gpu-0"}, "taint": {"key": "k", "effect": "NoExecute"}}
    cache.rules.update({"metadata": {"name": "r"}, "spec": rule})
    cache.claims.delete(claim("c", "gpu-0"))
    (node,) = cache.with_devices([bare()])
    assert [one.device.taint for one in node.gpus if one.device and one.device.name == "gpu-0"] == ["k:NoExecute"]
    count = len(heard)
    cache.slices.update(divisible(0)[0])
    assert len(heard) == count, "what is as it was changes nothing"
    cache.slices.retain("", [key_of(divisible(0)[0])])
    (node,) = cache.with_devices([bare()])
    assert "1 of 2 ResourceSlices" in node.fault
    for body in divisible(0):
        cache.slices.delete(body)
    assert cache.with_devices([bare()]) == (bare(),)
