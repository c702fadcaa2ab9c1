"""Slices of GPUs that MIG divides. The index of a slice says what it is, so that no slice is taken for another one.

Whole GPUs of a node have the indexes from 0 on. Slices of a profile such as `2g.20gb` have a thousand indexes of their
own, from `first_index` on. Where a layout changes, the indexes of slices that are gone are those of no device, and a
server that had them is placed as if its GPUs were lost.

Devices that DRA drivers publish have indexes of their own, too, which follow from what a ResourceClaim asks for
(`dra_index`): a GPU that is replaced by another one is another device.
"""

import hashlib
import re
from collections.abc import Sequence

GPU_RESOURCE = "nvidia.com/gpu"
MIG_RESOURCES = "nvidia.com/mig-"
"""How slices are called under the device plugin's mixed strategy, before their profile."""
NO_RESOURCE = ""
"""The resource of devices that no Pod asks for by a resource's name."""
MOST_INDEXES = 2_000_000_000
"""Every index is less than this."""
MOST_MEMORY = 1 << 44
"""Bytes that a device may have: 16 TiB, many times what any has."""
_PER_KIND = 1000
_FIRST = 10_000_000
_FIRST_DRA, _FIRST_DRA_PART, _DRA = 1_000_000_000, 1_500_000_000, 500_000_000
_PROFILE = re.compile(r"([1-9])g\.([1-9]\d{0,2})gb(|\.me|\.gfx)")
_SUFFIXES = ("", ".me", ".gfx")
_SINGLE = 5
"""Added to the position of a suffix under the single strategy, by which slices are called as GPUs are."""
_PARTS, _PARTS_OF_A30 = 7, 4
"""Parts of a GPU's compute that its slices have."""


def first_index(profile: str, *, single: bool) -> int | None:
    """Return the first index of slices of a profile, as `2g.20gb`; None of a profile that is not supported.

    `single`: the device plugin offers them as `nvidia.com/gpu`.
    """
    match = _PROFILE.fullmatch(profile)
    if match is None:
        return None
    variant = _SUFFIXES.index(match[3]) + (_SINGLE if single else 0)
    return ((int(match[1]) * 1000 + int(match[2])) * 10 + variant) * _PER_KIND


def is_slice(index: int) -> bool:
    """Return whether a device of this index is a part of a GPU."""
    return _FIRST <= index < _FIRST_DRA or index >= _FIRST_DRA_PART


def is_dra(index: int) -> bool:
    """Return whether a Pod has a device of this index by a ResourceClaim."""
    return index >= _FIRST_DRA


def dra_index(device_class: str, selector: str, *, part: bool) -> int:
    """Return the index of a device by what a ResourceClaim asks for. It tells whether the device is a part of a GPU."""
    digest = hashlib.sha256(f"{device_class}\n{selector}".encode()).digest()
    return (_FIRST_DRA_PART if part else _FIRST_DRA) + int.from_bytes(digest[:8]) % _DRA


def kind_of(index: int) -> int:
    """Return the first index of the devices that are like this one: 0 of whole GPUs. A device of a DRA driver is
    like no other.
    """
    if is_dra(index):
        return index
    return index - index % _PER_KIND if is_slice(index) else 0


def resource_of(index: int) -> str:
    """Return the resource by which a Pod asks for such a device; `NO_RESOURCE` where it has a
    ResourceClaim."""
    if is_dra(index):
        return NO_RESOURCE
    profile, variant = _decoded(index)
    return GPU_RESOURCE if not profile or variant >= _SINGLE else MIG_RESOURCES + profile


def compute_of(index: int, product: str) -> int:
    """Return the thousandths of a GPU's compute that a device of a product has."""
    return compute_share(index // _FIRST, product) if is_slice(index) else 1000


def compute_share(parts: int, product: str) -> int:
    """Return the thousandths of a GPU's compute that so many of its parts have."""
    every = _PARTS_OF_A30 if "A30" in product else _PARTS
    return 1000 * min(every, parts) // every


def parts_of(profile: str) -> int | None:
    """Return how many parts of a GPU's compute slices of a profile have; None of a profile that is not supported."""
    match = _PROFILE.fullmatch(profile)
    return int(match[1]) if match else None


def profile_of(index: int) -> str:
    """Return the profile of a slice of this index; empty for a whole GPU, and for what a DRA driver publishes."""
    return _decoded(index)[0]


def device_name(index: int) -> str:
    """Return what a device of this index is called: `GPU 2`, `slice 0 of 1g.10gb`, or `partition 1500000042` of what a
    DRA driver divides.
    """
    if is_dra(index) and is_slice(index):
        return f"partition {index}"
    profile, _ = _decoded(index)
    return f"slice {index % _PER_KIND} of {profile}" if profile else f"GPU {index}"


def device_names(indexes: Sequence[int]) -> str:
    """Return what devices are called together, as `GPUs 0, 1`; nothing is `the CPU`."""
    if any(map(is_slice, indexes)):
        return ", ".join(map(device_name, indexes))
    return f"{'GPU' if len(indexes) == 1 else 'GPUs'} {', '.join(map(str, indexes))}" if indexes else "the CPU"


def _decoded(index: int) -> tuple[str, int]:
    """Return the profile of a slice, empty for a whole GPU, and the number of its variant."""
    if not is_slice(index) or is_dra(index):
        return "", 0
    sizes, variant = divmod(index // _PER_KIND, 10)
    parts, gigabytes = divmod(sizes, 1000)
    return f"{parts}g.{gigabytes}gb{_SUFFIXES[variant % _SINGLE]}", variant
