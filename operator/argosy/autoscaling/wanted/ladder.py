"""What a replica may be set to and what it then holds, by what was learnt; and within which of the targets."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, structs

from argosy.autoscaling.capacity.engine import Engine
from argosy.autoscaling.capacity.settings import SHARES, Limits, Setting, settings, strictest
from argosy.autoscaling.decision import Allocation, Room
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.learning.overdriven import ALMOST
from argosy.autoscaling.learning.variation import largest_batch
from argosy.autoscaling.metrics.signals import Distribution, Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.wanted.needs import seconds


class Limited(Struct, frozen=True):
    """The latency that has limits, `what`: `limits` and what was `measured`, seconds by percentile. Within less than a
    request takes `alone` no number of replicas holds it.
    """

    what: str
    limits: Mapping[str, float]
    measured: Distribution
    alone: float

    @property
    def within_reach(self) -> Iterator[str]:
        """The percentiles that replicas can hold within their limits."""
        return (name for name, limit in self.limits.items() if limit > self.alone)


class Within(Struct, frozen=True):
    """The target that a rate is held within: its percentile's `name`, its `limit` and what was `observed`, seconds.
    Where a target is out of reach of any number of replicas, `beyond` says so and `limited_by` names its field.
    """

    metric: str
    name: str
    limit: float
    observed: float | None
    beyond: str = ""
    limited_by: str = ""


def ladder_of(policy: Policy, allocation: Allocation, room: Room, memory: Memory) -> tuple[Setting, ...]:
    """Return settings with the rows a second that each holds, the cheapest first; none before service times
    are known.
    """
    if memory.service is None:
        return ()
    engine = engine_of(memory)
    found = _settings(policy, allocation, room, memory) if engine is None else (_whole(policy, allocation, engine),)
    return found if memory.overdriven is None else tuple(_within_experience(memory, each) for each in found)


def engine_of(memory: Memory) -> Engine | None:
    """Return the engine that batches by itself, once enough is known of it."""
    return memory.engine.engine(memory.service) if memory.engine is not None else None


def _whole(policy: Policy, allocation: Allocation, engine: Engine) -> Setting:
    """An engine has nothing that is set from outside."""
    first_token = sorted(policy.targets.first_token.items())
    limits = tuple((SHARES[name], longest) for name, longest in first_token if longest > engine.prompt_s)
    return Setting(allocation.instances, allocation.window_s, engine.held(policy.targets.busy_high, limits))


def _settings(policy: Policy, allocation: Allocation, room: Room, memory: Memory) -> tuple[Setting, ...]:
    if memory.service is None:
        return ()
    bounds, most = policy.bounds, _most_instances(policy, allocation, room, memory)
    largest, variation = largest_batch(policy, allocation), memory.variation
    limits = Limits.of(policy.targets, memory.service)
    found = settings(memory.service, limits, bounds, most, largest, variation)
    if found[-1].rate > 0:
        return found
    return settings(memory.service, Limits((), (), None, limits.busy), bounds, most, largest, variation)


def _within_experience(memory: Memory, setting: Setting) -> Setting:
    """What so many instances were found not to hold, they and fewer do not hold, whatever the model says."""
    known = memory.overdriven
    if known is None or setting.instances > known.instances:
        return setting
    return structs.replace(setting, rate=min(setting.rate, ALMOST * known.rate * memory.rows))


def _most_instances(policy: Policy, allocation: Allocation, room: Room, memory: Memory) -> int:
    """Of one device: what the spec, the memory and the room leave, and one more than was seen at work."""
    most = min(policy.bounds.max_instances, memory.experience.busiest + 1)
    if memory.most_instances is not None:
        most = min(most, memory.most_instances)
    if room.instances is not None:
        most = min(most, allocation.instances + room.instances)
    return max(policy.bounds.min_instances, most)


def limited(policy: Policy, signals: Signals, memory: Memory) -> Limited:
    """Return the first token's of an engine once enough is known of it, else that of whole requests."""
    engine = engine_of(memory)
    if engine is not None:
        return Limited("first token", policy.targets.first_token, signals.first_token, engine.prompt_s)
    alone = memory.service.seconds(1.0) if memory.service is not None else 0.0
    return Limited("latency", policy.targets.latency, signals.latency, alone)


def held_within(policy: Policy, signals: Signals, memory: Memory) -> Within:
    """Return the strictest target that what is held follows from; without a name where that is the time in
    use alone.
    """
    latency = limited(policy, signals, memory)
    if latency.what == "latency":
        beyond, limited_by = _out_of_reach(latency, "one request alone is executed for", "spec.slo.latency")
    else:
        beyond, limited_by = _out_of_reach(latency, "a prompt alone takes", "spec.slo.timeToFirstToken")
    name = strictest(latency.within_reach)
    if not name:
        return Within("busy", "", 0.0, None, beyond, limited_by)
    metric = f"{latency.what} {name}"
    words = name if latency.what == "latency" else metric
    return Within(metric, words, latency.limits[name], latency.measured.percentile(name), beyond, limited_by)


def _out_of_reach(latency: Limited, takes: str, field: str) -> tuple[str, str]:
    """The one that no number of replicas holds, in words and as a field; nothing where all can be."""
    for name, limit in sorted(latency.limits.items()):
        if limit <= latency.alone:
            return f"; {name} {seconds(limit)} is out of reach, {takes} {seconds(latency.alone)}", f"{field}.{name}"
    return "", ""
