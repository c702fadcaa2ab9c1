"""Dynamic batching and its queues."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from argosy.api.values.base import MAX_EXACT, ApiModel, Fault, Flag, Int, Rule

Microseconds = Annotated[Int, Field(ge=0, le=MAX_EXACT)]
BatchSizes = tuple[Annotated[Int, Field(ge=1, le=2**31 - 1)], ...]


class TimeoutAction(StrEnum):
    """What happens to a request whose timeout expires in the queue."""

    REJECT = "REJECT"
    DELAY = "DELAY"


class QueuePolicy(ApiModel):
    """The length of a queue, and the timeout of requests in it."""

    timeout_action: TimeoutAction = Field(
        default=TimeoutAction.REJECT,
        description="REJECT answers an expired request with an error; DELAY executes it after the others. Default: "
        "REJECT.",
    )
    default_timeout_microseconds: Microseconds = Field(
        default=0, description="How long a request may wait, in microseconds. Default: 0, no limit."
    )
    allow_timeout_override: Flag = Field(
        default=False,
        description="Whether a request may ask for a shorter timeout of its own. Default: false.",
    )
    max_queue_size: Int = Field(
        default=0,
        ge=0,
        le=2**32 - 1,
        description="The most requests that may wait; further ones are rejected. Default: 0, no limit.",
    )


def _preserved_order(batching: "Batching") -> Iterator[Fault]:
    if not batching.preserve_ordering:
        return
    if batching.priority_levels > 1:
        yield Fault(
            f"preserveOrdering keeps one order, and {batching.priority_levels} priority levels change it; "
            "set one of the two",
            ("preserveOrdering",),
        )
    for path, policy in _policies(batching):
        if policy.timeout_action is TimeoutAction.DELAY and policy.default_timeout_microseconds:
            yield Fault(
                "DELAY with a timeout reorders requests, which preserveOrdering forbids; use REJECT, or drop one",
                (*path, "timeoutAction"),
            )


def _policies(batching: "Batching") -> Iterator[tuple[tuple[str | int, ...], QueuePolicy]]:
    if batching.queue_policy is not None:
        yield ("queuePolicy",), batching.queue_policy
    for level, policy in batching.priority_queue_policies.items():
        yield ("priorityQueuePolicies", str(level)), policy


def _priorities(batching: "Batching") -> Iterator[Fault]:
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        yield Fault(f"must be from 1 to priorityLevels ({levels}); found {default}", ("defaultPriorityLevel",))
    if default and not levels:
        yield Fault("has no effect without priorityLevels; set it, or leave this out", ("defaultPriorityLevel",))
    for level in batching.priority_queue_policies:
        if level > levels:
            yield Fault(
                f"there is no priority level {level}: priorityLevels is {levels}",
                ("priorityQueuePolicies", str(level)),
            )


class BatchFormation(ApiModel):
    """When the requests of a queue become a batch."""

    preferred_batch_sizes: BatchSizes = Field(
        default=(),
        max_length=32,
        description="Batch sizes that are executed as soon as they are reached. Default: the largest possible.",
    )
    max_queue_delay_microseconds: Microseconds = Field(
        default=0, description="How long a request waits for others, in microseconds. Default: 0."
    )
    preserve_ordering: Flag = Field(
        default=False, description="Whether responses come in the order of their requests. Default: false."
    )


class Batching(BatchFormation):
    """Dynamic batching, which joins requests that arrive close together."""

    priority_levels: Int = Field(
        default=0,
        ge=0,
        le=MAX_EXACT,
        description="How many priorities requests may have; 1 is the highest. Default: 0, none.",
    )
    default_priority_level: Int = Field(
        default=0,
        ge=0,
        le=MAX_EXACT,
        description="The priority of a request that names none; required with priorityLevels.",
    )
    queue_policy: QueuePolicy | None = Field(
        default=None, description="The policy of every queue without one of its own."
    )
    priority_queue_policies: dict[Annotated[int, Field(ge=1)], QueuePolicy] = Field(
        default_factory=dict, max_length=64, description="Queue policies of priority levels, by level."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("preserve_ordering", "priority_levels", "queue_policy", "priority_queue_policies"),
            _preserved_order,
            cel="!self.preserveOrdering || self.priorityLevels <= 1",
            says="preserveOrdering allows no more than one priority level",
        ),
        Rule(
            ("priority_levels", "default_priority_level", "priority_queue_policies"),
            _priorities,
            cel="self.priorityLevels == 0 ? self.defaultPriorityLevel == 0 : "
            "self.defaultPriorityLevel >= 1 && self.defaultPriorityLevel <= self.priorityLevels",
            says="defaultPriorityLevel must be from 1 to priorityLevels",
        ),
    )
