"""The rate limiter: instances of all models run when the resources that they need are free, by priority.

An instance that could run waits until it is granted. Those that wait are granted by *turn*: each grant moves an
instance's turn on by its priority, so that of two that always wait, one of priority 2 is granted half as often as one
of priority 1. One that begins to wait gets no turn before that of the last grant: it makes up for nothing.

What an instance needs whose turn it is is reserved for it: one of a later turn is granted before it only with what is
free beyond that. So nothing is free that could be used, and an instance that needs much is not passed for ever by those
that need little.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count

from .resources import Resource, Resources

Wake = Callable[[], None]
"""Tells a model that one of its instances was granted, or that its work is to be looked at again."""


class LimitedInstance:
    """An instance as the rate limiter knows it. `turn` decides who is next, `since` between equal ones.

    `granted`: it may run a batch now, and has its resources. `runs`: a batch has them. `retires`: it is removed when
    its batch has ended.
    """

    __slots__ = ("granted", "needs", "number", "priority", "retires", "runs", "since", "turn", "waits", "wake")

    def __init__(self, number: int, needs: Mapping[Resource, int], priority: int, wake: Wake) -> None:
        self.number = number
        self.needs = needs
        self.priority = max(1, priority)
        self.wake = wake
        self.turn = 0
        self.since = 0
        self.waits = False
        self.granted = False
        self.runs = False
        self.retires = False


class RateLimiter:
    """The instances of all models of a server, and its resources.

    An instance waits (`wait`), is granted (its `wake` is called), and either `began` a batch that `ended`, or
    `declined`. Whatever it does, it can `retire`.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._waiting: list[LimitedInstance] = []
        self._numbers = count()
        self._arrivals = count()
        self._turn = 0
        self._granting = False

    def add(self, needs: Mapping[Resource, int], priority: int, wake: Wake) -> LimitedInstance:
        """Add an instance. Raises ServingError where its needs can never be met."""
        instance = LimitedInstance(next(self._numbers), needs, priority, wake)
        self._resources.declare(instance.number, needs)
        return instance

    def retire(self, instance: LimitedInstance) -> None:
        """Remove an instance once the batch has ended that it may run; it gets no other."""
        instance.retires = True
        if not instance.runs:
            self._remove(instance)

    def _remove(self, instance: LimitedInstance) -> None:
        if instance.waits:
            self._waiting.remove(instance)
        if instance.granted or instance.runs:
            self._resources.give_back(instance.needs)
        instance.waits = instance.granted = instance.runs = False
        self._resources.withdraw(instance.number)
        self._grant()

    def wait(self, instance: LimitedInstance) -> None:
        """Have a free instance wait for a batch; no change where it waits or is granted already."""
        if instance.waits or instance.granted or instance.runs or instance.retires:
            return
        instance.waits = True
        instance.turn = max(instance.turn, self._turn)
        instance.since = next(self._arrivals)
        self._waiting.append(instance)
        self._grant()

    def began(self, instance: LimitedInstance) -> None:
        """Note that a granted instance runs a batch."""
        instance.granted, instance.runs = False, True

    def ended(self, instance: LimitedInstance) -> None:
        """Take the resources of an instance whose batch has ended."""
        if instance.runs and instance.retires:
            self._remove(instance)
        elif instance.runs:
            instance.runs = False
            self._resources.give_back(instance.needs)
            self._grant()

    def declined(self, instance: LimitedInstance) -> None:
        """Take an instance back that has nothing to run, whether it waits or is granted. The grant does not count."""
        if instance.waits:
            instance.waits = False
            self._waiting.remove(instance)
        elif instance.granted:
            instance.granted = False
            instance.turn -= instance.priority
            self._resources.give_back(instance.needs)
        else:
            return
        self._grant()

    def _grant(self) -> None:
        """Grant every instance that can be granted. What a grant leads to follows in the same loop."""
        if self._granting:
            return
        self._granting = True
        try:
            while (instance := self._next()) is not None:
                self._waiting.remove(instance)
                self._resources.take(instance.needs)
                instance.waits, instance.granted = False, True
                self._turn = max(self._turn, instance.turn)
                instance.turn += instance.priority
                instance.wake()
        finally:
            self._granting = False

    def _next(self) -> LimitedInstance | None:
        """Return the first instance whose needs can be met without those of one before it; None without one."""
        reserved = Counter[Resource]()
        for instance in sorted(self._waiting, key=_order):
            if self._resources.suffice(instance.needs, reserved):
                return instance
            reserved.update(instance.needs)
        return None


def _order(instance: LimitedInstance) -> tuple[int, int]:
    return instance.turn, instance.since
