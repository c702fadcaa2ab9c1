"""The stable version of a model with its candidate: requests go to the former, and copies of some to the latter."""

from collections.abc import Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.execution.clock import LoopClock
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.execution.shadow.mirror import Mirror
from argosy_runtime.messages import Deliver, InferRequest, Submission
from argosy_runtime.modelconfig.parameters.traffic import Shadow, VersionTraffic
from argosy_runtime.repository.serving.version import ServedVersion


class ShadowedVersion:
    """What requests without a version are sent to in place of the `stable` version while there is a `candidate`."""

    def __init__(self, shadow: Shadow, stable: ServedVersion, candidate: ServedVersion, work: ComparisonWork) -> None:
        self.shadow = shadow
        self.stable = stable
        self.candidate = candidate
        self.version = stable.version
        self.decoupled = stable.decoupled
        self._mirror = Mirror(shadow, stable, candidate, work, LoopClock())

    @property
    def config(self) -> ModelConfig:
        """The configuration of the stable version."""
        return self.stable.config

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun at the stable version."""
        return self.stable.continues(request)

    def submit(self, request: InferRequest, deliver: Deliver) -> Submission:
        """Start a request at the stable version, as its own `submit`."""
        return self._mirror.submit(request, deliver)

    def close(self) -> None:
        """Withdraw the copies that are under way, and make no further ones."""
        self._mirror.close()


def follow_shadow(
    former: ShadowedVersion | None,
    traffic: VersionTraffic | None,
    answering: Mapping[str, ServedVersion],
    work: ComparisonWork,
) -> ShadowedVersion | None:
    """Return the shadow of the present traffic and versions, and close the former one where it is another."""
    shadow = traffic.shadow if traffic is not None else None
    stable = answering.get(str(traffic.stable)) if traffic is not None else None
    candidate = answering.get(str(shadow.version)) if shadow is not None else None
    if former is not None:
        if (former.shadow, former.stable, former.candidate) == (shadow, stable, candidate):
            return former
        former.close()
    if shadow is None or stable is None or candidate is None:
        return None
    return ShadowedVersion(shadow, stable, candidate, work)
