"""The scaling policy of a pool's member: bounds, targets and pace. Durations are in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_LEAST_SHARE = 0.001
"""The least share that a specification can name, but for 0."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a decision. Instances are per device; a replica has `devices`. `max_window_s`: the longest batching
    window, None where the spec or the server sets it. `max_batch`: the most rows of a batch, 0 without batching;
    `smaller_batches`: whether Argosy may reduce it. `min_by` and `max_by`: the fields that set the bounds of replicas;
    empty where no field does. `fixed_by`: the field that fixes the replicas, such as `spec.replicas`; both bounds are
    equal then.
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
    """Targets of a member. Durations of the SLO are by the name of their percentile (`p99`), in seconds.

    `queue_share`: the largest share of a request's time spent waiting (0 to 1); `concurrency`: requests, waiting or
    running, per replica; `tokens`: generated per second and replica; `busy_low` and `busy_high`: bounds of the share of
    instances' time spent executing (0 to 1).
    """

    latency: Mapping[str, float] = field(default_factory=dict)
    queue_delay: Mapping[str, float] = field(default_factory=dict)
    first_token: Mapping[str, float] = field(default_factory=dict)
    between_tokens: Mapping[str, float] = field(default_factory=dict)
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
    """The speed of scaling. `step_up` and `step_down`: the most replicas added or removed at once (None: no limit).

    `cooldown_up_s`: least time between two scale-ups; `cooldown_down_s`: least time between any change and a
    scale-down. `stabilization_s`: the window whose largest recommendation bounds a scale-down. `idle_s`: time without a
    request after which a member scales to zero, where the bounds allow it.
    """

    step_up: int | None = None
    step_down: int | None = None
    cooldown_up_s: float = 0.0
    cooldown_down_s: float = 0.0
    stabilization_s: float = 300.0
    idle_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Served:
    """The workload that GPU memory has to hold: the loaded `versions`, the declared `footprint` in the API's words, and
    `gpu_memory`, bytes of the smallest GPU that the model is on. Empty or 0 if unknown.
    """

    versions: tuple[int, ...] = ()
    footprint: str = ""
    gpu_memory: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a member. `startup_s`: the time until a new replica answers. `served`: the workload that an
    out-of-memory reduction applies to.
    """

    bounds: Bounds = Bounds()
    targets: Targets = Targets()
    pace: Pace = Pace()
    startup_s: float = 30.0
    served: Served = Served()
