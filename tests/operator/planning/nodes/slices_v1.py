"""ResourceSlices as NVIDIA's DRA driver publishes them: GPUs, and partitions that exclude each other."""

from collections.abc import Mapping, Sequence
from typing import Any

Body = dict[str, Any]
DRIVER = "gpu.nvidia.com"
PROFILES: Mapping[str, tuple[int, int, Sequence[int]]] = {
    "1g.10gb": (1, 1, range(7)),
    "2g.20gb": (2, 2, (0, 2, 4)),
    "3g.40gb": (3, 4, (0, 4)),
    "7g.80gb": (7, 8, (0,)),
}
"""Parts of the compute, slices of the memory, and where these may begin, of an A100 of 80 GB."""
A100 = "NVIDIA A100-SXM4-80GB"


def gpu(number: int, memory: str = "80Gi", taints: Sequence[Body] = (), product: str = A100, **more: Any) -> Body:
    """Return a whole GPU."""
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{number}"},
            "productName": {"string": product},
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "580.65.6"},
            "resource.kubernetes.io/pciBusID": {"string": f"0000:0{number}:00.0"},
        },
        "capacity": {"memory": {"value": memory}},
        **({"taints": list(taints)} if taints else {}),
        **more,
    }


def partition(number: int, profile: str, start: int) -> Body:
    """Return a partition that exists once a Pod has it, so it has no UUID yet."""
    parts, size, _ = PROFILES[profile]
    slices = [f"memory-slice-{at}" for at in range(start, start + size)]
    counters = {"multiprocessors": {"value": str(parts * 14)}, **{name: {"value": "1"} for name in slices}}
    return {
        "name": f"gpu-{number}-mig-{profile.replace('.', '-')}-{start}",
        "attributes": {
            "type": {"string": "mig"},
            "profile": {"string": profile},
            "productName": {"string": A100},
            "cudaComputeCapability": {"version": "8.0.0"},
            "resource.kubernetes.io/pciBusID": {"string": f"0000:0{number}:00.0"},
        },
        "capacity": {
            "memory": {"value": f"{size * 9728}Mi"},
            **{f"memorySlice{at}": {"value": "1"} for at in range(start, start + size)},
        },
        "consumesCounters": [{"counterSet": f"gpu-{number}", "counters": counters}],
    }


def counters(number: int) -> Body:
    """Return what a GPU and its partitions share."""
    slices = {f"memory-slice-{at}": {"value": "1"} for at in range(8)}
    return {"name": f"gpu-{number}", "counters": {"multiprocessors": {"value": "98"}, **slices}}


def every(number: int) -> list[Body]:
    """Return a GPU that can be divided, and all of its partitions."""
    (all_of_it,) = [{"counterSet": f"gpu-{number}", "counters": counters(number)["counters"]}]
    parts = [partition(number, profile, start) for profile, (_, _, starts) in PROFILES.items() for start in starts]
    return [gpu(number, consumesCounters=[all_of_it]), *parts]


def resource_slice(name: str, *devices: Body, node: str = "a", **spec: Any) -> Body:
    """Return a ResourceSlice of a node's pool."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1, **spec.pop("pool", {})}
    content = {"devices": list(devices)} if devices else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **content, **spec},
    }


def divisible(*numbers: int, node: str = "a") -> list[Body]:
    """Return the slices of GPUs that can be divided: their counters in one of its own, as the API server has it."""
    pool = {"resourceSliceCount": len(numbers) + 1}
    shared = resource_slice(f"{node}-c", node=node, pool=pool, sharedCounters=[counters(at) for at in numbers])
    return [shared, *(resource_slice(f"{node}-{at}", *every(at), node=node, pool=pool) for at in numbers)]
