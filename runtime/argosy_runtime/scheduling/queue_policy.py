"""Limits of a queue: how long a request may wait, and how many may wait with it (ModelQueuePolicy)."""

from dataclasses import dataclass
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelDynamicBatching, ModelQueuePolicy

from argosy_runtime.messages import SHADOW_PRIORITY

from .queued_request import QueuedRequest

_MICROSECOND = 1_000
SHADOW_LEVEL: Final = 1 << 62
"""The level of copies for a shadow, behind all others."""


@dataclass(frozen=True)
class QueuePolicy:
    """One priority level's policy. `timeout_ns` 0 is none; `max_size` 0 is unbounded."""

    max_size: int = 0
    timeout_ns: int = 0
    allow_override: bool = False
    delay_on_timeout: bool = False

    @classmethod
    def of(cls, policy: ModelQueuePolicy) -> "QueuePolicy":
        """Read a policy from a model's configuration."""
        return cls(
            max_size=policy.max_queue_size,
            timeout_ns=policy.default_timeout_microseconds * _MICROSECOND,
            allow_override=policy.allow_timeout_override,
            delay_on_timeout=policy.timeout_action == ModelQueuePolicy.DELAY,
        )

    def deadline(self, queued: QueuedRequest) -> int | None:
        """Return when the request's wait ends. A request may shorten the default timeout, never lengthen it."""
        timeout = self.timeout_ns
        requested = queued.request.timeout_us * _MICROSECOND
        if self.allow_override and 0 < requested < timeout:
            timeout = requested
        return queued.arrived + timeout if timeout else None


@dataclass(frozen=True)
class QueuePolicies:
    """The policies of all priority levels, the highest (1) first; level 0 stands for a model without levels."""

    default: QueuePolicy
    by_level: dict[int, QueuePolicy]
    levels: int = 0
    default_level: int = 0

    @classmethod
    def of(cls, batching: ModelDynamicBatching) -> "QueuePolicies":
        """Read the policies of a model's dynamic batching."""
        return cls(
            default=QueuePolicy.of(batching.default_queue_policy),
            by_level={int(level): QueuePolicy.of(p) for level, p in batching.priority_queue_policy.items()},
            levels=batching.priority_levels,
            default_level=batching.default_priority_level,
        )

    def level(self, requested: int) -> int:
        """Return the level of a request; out of range (0 included) is the default, as in Triton."""
        if requested == SHADOW_PRIORITY:
            return SHADOW_LEVEL
        return requested if 0 < requested <= self.levels else self.default_level

    def policy(self, level: int) -> QueuePolicy:
        """Return the policy of one level."""
        return _SHADOW_POLICY if level == SHADOW_LEVEL else self.by_level.get(level, self.default)


# Their number and their time are limited where they are sent.
_SHADOW_POLICY = QueuePolicy()
UNBOUNDED = QueuePolicies(default=QueuePolicy(), by_level={})
