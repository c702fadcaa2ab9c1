"""The instances of one version at the rate limiter: each takes the resources of its group while a batch runs on it."""

from collections.abc import Callable, Iterable

from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup

from argosy_runtime.modelconfig import InstancePlacement
from argosy_runtime.scheduling.limits.rate_limiter import LimitedInstance, RateLimiter
from argosy_runtime.scheduling.limits.resources import needs

_Key = tuple[str, bytes, int]


def _nothing() -> None:
    """Do nothing: no dispatcher is there yet."""


class LimitedInstances:
    """The instances by placement. They last as long as the placements: a restarted instance is the same one here.

    `wake` is called when one of them is granted.
    """

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._instances: dict[_Key, LimitedInstance] = {}
        self.wake: Callable[[], None] = _nothing

    def of(self, placement: InstancePlacement) -> LimitedInstance:
        """Return the instance of a placement. Raises ServingError where its resources can never be there."""
        instance = self._instances.get(_key(placement))
        if instance is None:
            group = ModelInstanceGroup.FromString(placement.group)
            required = needs(group.rate_limiter, placement.device_id)
            instance = self._limiter.add(required, group.rate_limiter.priority, lambda: self.wake())
            self._instances[_key(placement)] = instance
        return instance

    def keep(self, placements: Iterable[InstancePlacement]) -> None:
        """Retire the instances of all other placements, each once its batch has ended."""
        remaining = {_key(placement) for placement in placements}
        for key in [key for key in self._instances if key not in remaining]:
            self._limiter.retire(self._instances.pop(key))


def _key(placement: InstancePlacement) -> _Key:
    return placement.name, *placement.alike
