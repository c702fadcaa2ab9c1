"""The rate limiter's resources: how many there are, and how many are in use, on each device and of the whole server.

A resource is available as often as a flag says; without flags as often as the instance needs that needs most of it. If
any flag names a resource, one that no flag names is not available at all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelRateLimiter

from argosy_runtime.errors import ServingError, invalid

GLOBAL: Final = None
"""The device of resources that the whole server shares."""

Resource = tuple[str, int | None]
"""A resource by its name and its device, the ordinal of a GPU or 0 for the CPU; GLOBAL for all devices together."""


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """`--rate-limit-resource`: how many of a resource there are, on one device or (None) on each."""

    name: str
    count: int
    device: int | None = None


def needs(limiter: ModelRateLimiter, device: int) -> dict[Resource, int]:
    """Return the resources that an execution of an instance on a device takes."""
    return {
        (resource.name, GLOBAL if getattr(resource, "global") else device): resource.count
        for resource in limiter.resources
    }


class Resources:
    """The resources of one server. The needs of every instance are declared before it takes any."""

    def __init__(self, limits: Iterable[ResourceLimit]) -> None:
        self._limits = tuple(limits)
        self._declared: dict[int, Mapping[Resource, int]] = {}
        self._available: dict[Resource, int] = {}
        self._used: Counter[Resource] = Counter()

    def declare(self, instance: int, required: Mapping[Resource, int]) -> None:
        """Declare the needs of an instance, by its number. Raises ServingError where they can never be met."""
        for resource, count in required.items():
            self._check(resource, count)
        self._declared[instance] = required
        self._count()

    def withdraw(self, instance: int) -> None:
        """Remove the needs of an instance that has ended and uses nothing."""
        del self._declared[instance]
        self._count()

    def _check(self, resource: Resource, required: int) -> None:
        name, device = resource
        scopes = {scope is GLOBAL for declared in self._declared.values() for other, scope in declared if other == name}
        if not scopes <= {device is GLOBAL}:
            raise invalid(
                f'Resource "{name}" is present as both global and device-specific resource in the model configuration.'
            )
        limit = self._limit(resource)
        if limit is not None and limit < required:
            raise _too_few(name, limit, required)

    def _limit(self, resource: Resource) -> int | None:
        """Return how many of a resource the flags make available; None where there are no flags."""
        if not self._limits:
            return None
        name, device = resource
        counts = [
            limit.count
            for limit in self._limits
            if limit.name == name and (device is GLOBAL or limit.device in (None, device))
        ]
        return max(counts, default=0)

    def _count(self) -> None:
        most: dict[Resource, int] = {}
        for required in self._declared.values():
            for resource, count in required.items():
                most[resource] = max(count, most.get(resource, 0))
        self._available = {
            resource: count if (limit := self._limit(resource)) is None else limit for resource, count in most.items()
        }

    def free(self, resource: Resource) -> int:
        """Return how many of a resource nothing uses."""
        return self._available.get(resource, 0) - self._used[resource]

    def suffice(self, required: Mapping[Resource, int], reserved: Mapping[Resource, int]) -> bool:
        """Return whether these can be taken now, apart from those that are `reserved`."""
        return all(self.free(resource) - reserved.get(resource, 0) >= count for resource, count in required.items())

    def take(self, required: Mapping[Resource, int]) -> None:
        """Take resources, which suffice."""
        self._used.update(required)

    def give_back(self, required: Mapping[Resource, int]) -> None:
        """Give taken resources back."""
        self._used.subtract(required)


def _too_few(name: str, limit: int, required: int) -> ServingError:
    return invalid(
        f'Resource count for "{name}" is limited to {limit} which will prevent scheduling of one or more model '
        f"instances, the minimum required count is {required}"
    )
