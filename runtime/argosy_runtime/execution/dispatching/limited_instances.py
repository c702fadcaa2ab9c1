"""The instances of one version at the rate limiter: each takes the resources of its group while a batch runs on it."""

from collections.abc import Callable, Iterable

from tritonclient.grpc.model_config_pb2 import ModelInstanceGroup

from argosy_runtime.errors import ServingError
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
        """Return the instance of a placement, which is followed."""
        return self._instances[_key(placement)]

    def follow(self, placements: Iterable[InstancePlacement]) -> None:
        """Have an instance for each of these, and retire those of all others once their batches have ended.

        Raises ServingError, and changes nothing, where the resources of one can never be there.
        """
        desired = {_key(placement): placement for placement in placements}
        added: dict[_Key, LimitedInstance] = {}
        try:
            for key, placement in desired.items():
                if key not in self._instances:
                    added[key] = self._add(placement)
        except ServingError:
            for instance in added.values():
                self._limiter.retire(instance)
            raise
        for key in [key for key in self._instances if key not in desired]:
            self._limiter.retire(self._instances.pop(key))
        self._instances |= added

    def _add(self, placement: InstancePlacement) -> LimitedInstance:
        group = ModelInstanceGroup.FromString(placement.group)
        required = needs(group.rate_limiter, placement.device_id)
        return self._limiter.add(required, group.rate_limiter.priority, lambda: self.wake())

    def close(self) -> None:
        """Retire all instances; none runs a batch any more."""
        for instance in self._instances.values():
            self._limiter.ended(instance)
        self.follow(())


def _key(placement: InstancePlacement) -> _Key:
    return placement.name, *placement.alike
