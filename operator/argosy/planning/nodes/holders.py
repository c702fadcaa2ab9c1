"""Why a device is withheld, in words: what has it, or what keeps all from it."""

from argosy.api.values.identity import PoolKey

MIG, RESOURCE_SLICE = "MIG", "its ResourceSlice"
"""What makes devices as each node of a type has them: followed by what cannot be used of it, in parentheses."""
_POD, _POOL, _BUILD = "Pod ", "ServingPool ", "build "
_HOLDERS = (_POD, _POOL, "ResourceClaim ", _BUILD)


def pod_holder(pod: str) -> str:
    """Return the name of a Pod as the holder of a device."""
    return f"{_POD}{pod}"


def pool_holder(pool: PoolKey) -> str:
    """Return the name of a pool as the holder of a device."""
    return f"{_POOL}{pool}"


def build_holder(build: str) -> str:
    """Return the name of a build as the holder of a device."""
    return f"{_BUILD}{build}"


def is_held(reason: str) -> bool:
    """Return whether something has the device, and not whether nothing can have it as it is."""
    return reason.startswith(_HOLDERS)


def is_requested(reason: str) -> bool:
    """Return whether a Pod has requested the device from Kubernetes."""
    return reason.startswith((_POD, _POOL))


def is_of_build(reason: str) -> bool:
    """Return whether a build has the device."""
    return reason.startswith(_BUILD)


def is_of_mig(reason: str) -> bool:
    """Return whether MIG divides the GPU, so that it is none."""
    return reason.startswith(MIG)


def is_of_type(reason: str) -> bool:
    """Return whether the same keeps all from this device on each node of the type."""
    return reason.startswith((f"{MIG} (", f"{RESOURCE_SLICE} ("))
