"""The rate limiter: what is granted when, and that nothing is granted too often or never."""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tritonclient.grpc.model_config_pb2 import ModelRateLimiter

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.scheduling.limits.rate_limiter import LimitedInstance, RateLimiter
from argosy_runtime.scheduling.limits.resources import GLOBAL, ResourceLimit, Resources, needs


class Bench:
    """A limiter, and instances by name that note when they are granted."""

    def __init__(self, *limits: ResourceLimit) -> None:
        self.limiter = RateLimiter(Resources(limits))
        self.granted: list[str] = []
        self.of: dict[str, LimitedInstance] = {}

    def add(self, name: str, priority: int = 0, device: int = 0, **resources: int) -> None:
        required = {(resource, device): count for resource, count in resources.items()}
        self.of[name] = self.limiter.add(required, priority, lambda: self.granted.append(name))

    def wait(self, *names: str) -> None:
        for name in names:
            self.limiter.wait(self.of[name])

    def run(self, name: str) -> None:
        self.limiter.began(self.of[name])

    def end(self, name: str) -> None:
        self.limiter.ended(self.of[name])


def test_instances_without_resources_run_at_once():
    bench = Bench()
    bench.add("a"), bench.add("b")
    bench.wait("a", "b")
    assert bench.granted == ["a", "b"]


def test_two_models_take_turns_with_a_resource():
    bench = Bench()
    bench.add("a", R=4), bench.add("b", R=3)
    bench.wait("a", "b")
    assert bench.granted == ["a"]
    bench.run("a")
    bench.end("a")
    assert bench.granted == ["a", "b"]


def test_a_flag_lets_several_run():
    bench = Bench(ResourceLimit("R", 5))
    for name in "abc":
        bench.add(name, R=2)
    bench.wait("a", "b", "c")
    assert bench.granted == ["a", "b"]


def test_devices_have_resources_of_their_own():
    bench = Bench(ResourceLimit("R", 1), ResourceLimit("R", 2, device=1))
    bench.add("a", R=1), bench.add("b", R=1), bench.add("c", device=1, R=1), bench.add("d", device=1, R=1)
    bench.wait(*"abcd")
    assert bench.granted == ["a", "c", "d"]


def test_the_server_shares_its_global_resources():
    group = ModelRateLimiter(resources=[ModelRateLimiter.Resource(name="R", count=2, **{"global": True})])
    assert needs(group, 3) == {("R", GLOBAL): 2}
    bench = Bench(ResourceLimit("R", 3, device=7))
    for device in (0, 1):
        bench.of[str(device)] = bench.limiter.add(needs(group, device), 1, lambda: bench.granted.append("x"))
    bench.wait("0", "1")
    assert bench.granted == ["x"]


def test_priority_is_the_inverse_share_of_turns():
    bench = Bench()
    bench.add("a", priority=1, R=1), bench.add("b", priority=3, R=1), bench.add("c", R=1)
    bench.wait(*"abc")
    for _ in range(69):
        last = bench.granted[-1]
        bench.run(last)
        bench.wait(last)
        bench.end(last)
        bench.wait(last)
    counts = Counter(bench.granted)
    assert (counts["a"], counts["b"], counts["c"]) == (30, 10, 30)


def test_a_new_instance_makes_up_for_nothing():
    bench = Bench()
    bench.add("a", R=1)
    for _ in range(100):
        bench.wait("a"), bench.run("a"), bench.end("a")
    bench.add("b", R=1)
    bench.granted.clear()
    bench.wait("a", "b")
    for _ in range(9):
        last = bench.granted[-1]
        bench.run(last), bench.end(last), bench.wait(last)
    assert Counter(bench.granted) == {"a": 5, "b": 5}


def test_one_that_needs_much_is_not_passed_for_ever():
    bench = Bench(ResourceLimit("R", 2))
    bench.add("small", R=1), bench.add("other", R=1), bench.add("large", R=2)
    bench.wait("small", "other", "large")
    bench.run("small"), bench.run("other")
    bench.end("small")
    bench.wait("small")
    assert bench.granted == ["small", "other"]
    bench.end("other")
    assert bench.granted[2] == "large"


def test_an_instance_that_needs_other_resources_does_not_wait():
    bench = Bench()
    bench.add("a", R=1), bench.add("b", R=1), bench.add("c", S=1)
    bench.wait("a", "b", "c")
    assert bench.granted == ["a", "c"]


def test_a_grant_that_is_declined_goes_on_and_counts_for_nothing():
    bench = Bench()
    bench.add("a", R=1), bench.add("b", R=1)
    bench.wait("a", "b")
    bench.limiter.declined(bench.of["a"])
    assert bench.granted == ["a", "b"]
    assert bench.of["a"].turn == 0


def test_a_model_that_leaves_gives_back():
    bench = Bench(ResourceLimit("R", 1))
    bench.add("a", R=1), bench.add("b", R=1)
    bench.wait("a", "b")
    bench.run("a")
    bench.limiter.retire(bench.of["a"])
    assert bench.granted == ["a"], "its batch still runs"
    bench.end("a")
    assert bench.granted == ["a", "b"]
    bench.wait("a")
    assert not bench.of["a"].waits


@pytest.mark.parametrize(
    ("limits", "required", "message"),
    [
        ([ResourceLimit("R", 3)], {("R", 0): 4}, 'Resource count for "R" is limited to 3 which will prevent'),
        ([ResourceLimit("R", 9, device=1)], {("R", 0): 1}, 'Resource count for "R" is limited to 0 which will prevent'),
        ([ResourceLimit("S", 9)], {("R", GLOBAL): 1}, "model instances, the minimum required count is 1"),
        ([], {("G", 0): 1}, 'Resource "G" is present as both global and device-specific resource'),
    ],
)
def test_needs_that_cannot_be_met_are_refused(limits, required, message):
    limiter = RateLimiter(Resources(limits))
    if not limits:
        limiter.add({("G", GLOBAL): 1}, 1, lambda: None)
    with pytest.raises(ServingError) as raised:
        limiter.add(required, 1, lambda: None)
    assert message in raised.value.message
    assert raised.value.kind is ErrorKind.INVALID_ARG


RESOURCES = [("R", 0), ("S", 0), ("R", 1), ("G", GLOBAL)]


class LimiterMachine(RuleBasedStateMachine):
    """Instances that come, wait, run, decline and leave in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.limiter = RateLimiter(Resources([ResourceLimit("R", 3), ResourceLimit("S", 2), ResourceLimit("G", 4)]))
        self.instances: list[LimitedInstance] = []

    @rule(
        required=st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 2), max_size=3),
        priority=st.integers(0, 4),
        waits=st.booleans(),
    )
    def add(self, required, priority, waits) -> None:
        instance = self.limiter.add(required, priority, lambda: None)
        self.instances.append(instance)
        if waits:
            self.limiter.wait(instance)

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), what=st.sampled_from(["wait", "began", "ended", "declined", "retire"]))
    def act(self, data, what) -> None:
        instance = data.draw(st.sampled_from(self.instances))
        if what == "began" and not instance.granted:
            return
        getattr(self.limiter, what)(instance)
        self.instances = [one for one in self.instances if one.runs or not one.retires]

    @invariant()
    def never_more_than_there_is(self) -> None:
        used = Counter()
        for instance in self.instances:
            if instance.granted or instance.runs:
                used.update(instance.needs)
        for (name, device), count in used.items():
            assert count <= {"R": 3, "S": 2, "G": 4}[name], (name, device)

    @invariant()
    def nothing_waits_for_what_is_free(self) -> None:
        waiting = sorted((i for i in self.instances if i.waits), key=lambda i: (i.turn, i.since))
        if waiting:
            assert any(self.limiter._resources.free(need) < count for need, count in waiting[0].needs.items())

    @invariant()
    def an_instance_is_in_one_state(self) -> None:
        assert all(i.waits + i.granted + i.runs <= 1 for i in self.instances)

    def teardown(self) -> None:
        """All that wait get their turns once the others end."""
        for _ in range(3 * len(self.instances)):
            for instance in list(self.instances):
                if instance.granted:
                    self.limiter.began(instance)
                self.limiter.ended(instance)
        assert not any(instance.waits for instance in self.instances)


TestLimiter = LimiterMachine.TestCase
