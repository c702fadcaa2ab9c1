"""What a member of a pool asks of scaling: bounds, targets, and how fast it may go. Durations are in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_LEAST_SHARE = 0.001
"""The least share that a specification can name, but for 0."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be decided. `instances` are those of one device of a replica, of which it has `devices`;
    `max_window_s` is the longest a batch may wait, None where it is not ours to decide. `max_batch`: the most rows of
    a batch, 0 without batching; `smaller_batches`: whether they may be made smaller. `min_by` and `max_by`: the fields
    that those of replicas are from; empty where that is none. `fixed_by`: the field, such as `spec.replicas`, that
    decides the replicas; the bounds are equal then.
    """

    min_replicas: int = 1
    max_replicas: int = 1
    min_instances: int = 1
    max_instances: int = 1
    devices: int = 1
    max_window_s: float | None = None
    max_batch: int = 0
    smaller_batches: bool = True
    min_by: str = "spec.minReplicas"
    max_by: str = "spec.maxReplicas"
    fixed_by: str = ""


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """A PromQL value that replicas follow: `target` for each replica, or (`is_average` false) for all together."""

    name: str
    target: float
    is_average: bool = True


@dataclass(frozen=True, slots=True)
class Targets:
    """What is to be held. Percentiles by name (`p99`) of seconds, from the SLO.

    `queue_share`: the most of a request's time that it may wait (0 to 1); `concurrency`: requests, waiting or executed,
    for each replica; `tokens`: generated a second by each replica; `busy`: the share of instances' time spent executing
    (0 to 1), from `busy_low` to `busy_high`.
    """

    latency: Mapping[str, float] = field(default_factory=dict)
    queue_delay: Mapping[str, float] = field(default_factory=dict)
    first_token: Mapping[str, float] = field(default_factory=dict)
    error_rate: float | None = None
    queue_share: float | None = None
    concurrency: float | None = None
    tokens: float | None = None
    busy_low: float = 0.7
    busy_high: float = 0.85
    queries: tuple[QueryTarget, ...] = ()

    @property
    def margin(self) -> float:
        """The factor on what was measured when replicas are removed, so that the others are busy for `busy_low`."""
        return self.busy_high / max(self.busy_low, _LEAST_SHARE)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it may go. `step_up` and `step_down` are replicas at once (None: any number). After a scale up the next
    comes `cooldown_up_s` later; down only what `stabilization_s` together asked for, and `cooldown_down_s` after the
    last change. `idle_s`: after so long without a request replicas go to zero, where bounds let them.
    """

    step_up: int | None = None
    step_down: int | None = None
    cooldown_up_s: float = 0.0
    cooldown_down_s: float = 0.0
    stabilization_s: float = 300.0
    idle_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Served:
    """What memory has to suffice for: the `versions` that servers have loaded, the declared `footprint` in the API's
    words, and `gpu_memory`, bytes of the smallest GPU that the model is on; empty and 0 if unknown.
    """

    versions: tuple[int, ...] = ()
    footprint: str = ""
    gpu_memory: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """All of it. `startup_s`: how long a new replica takes until it answers, as measured or else assumed. `served`:
    what it is about, as far as memory goes.
    """

    bounds: Bounds = Bounds()
    targets: Targets = Targets()
    pace: Pace = Pace()
    startup_s: float = 30.0
    served: Served = Served()
