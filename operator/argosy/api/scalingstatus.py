"""What a status says of load: the scaling decision, what limits requests, and what language models' engines do."""

from typing import Annotated

from pydantic import Field

from argosy.api.conditions import AnyReason, camel_case
from argosy.api.statusparts import StatusPart
from argosy.api.values.base import Int, Number
from argosy.api.values.quantity import MeasuredShare, Quantity


class ScalingChange(StatusPart):
    """A change of replicas, instances or the batching of a model or an ensemble."""

    time: str = Field(description="The time of the change, RFC 3339.")
    replicas: Int = Field(default=0, ge=0, description="Replicas after it.")
    instances: Int = Field(default=1, ge=0, description="Instances on each device after it.")
    former_replicas: Int = Field(default=0, ge=0, description="Replicas before it.")
    former_instances: Int = Field(default=1, ge=0, description="Instances on each device before it.")
    reason: AnyReason = Field(description="The reason, in one CamelCase word.")
    message: str = Field(default="", description="The reason in a sentence, with the numbers.")


class OutOfMemoryStatus(StatusPart):
    """Limits of batches and instances since memory ran out.

    They are lifted for another version or footprint, and on GPUs with more memory.
    """

    time: str = Field(description="When they were last reduced, RFC 3339.")
    message: str = Field(default="", description="What was reduced and why, with the numbers.")
    versions: tuple[Int, ...] = Field(default=(), description="The versions that ran out of memory.")
    footprint: str = Field(default="", description="The footprint at that time, such as gpuMemory 4Gi.")
    gpu_memory: Quantity | None = Field(default=None, description="Memory of the smallest GPU that it was on.")
    max_instances: Int | None = Field(
        default=None, ge=1, description="The most instances on each device since then; absent if there is no limit."
    )


class ScalingStatus(StatusPart):
    """The scaling decision: desired replicas and instances, the measurements, and the reason."""

    replicas: Int = Field(default=0, ge=0, description="The desired number of replicas.")
    instances: Int = Field(default=1, ge=0, description="The desired number of instances on each device of a replica.")
    desired: Int = Field(
        default=0, ge=0, description="Replicas that the load requires, regardless of bounds and free GPUs."
    )
    max_queue_delay_microseconds: Int | None = Field(
        default=None, ge=0, description="The batching window, if Argosy sets it."
    )
    max_batch_size: Int | None = Field(
        default=None, ge=0, description="The largest batch, if memory does not suffice for that of the spec."
    )
    metric: str = Field(default="", description="The metric that decided, such as latency p99 or busy.")
    observed: Number | None = Field(default=None, description="Its value; durations are in seconds.")
    target: Number | None = Field(default=None, description="Its target: the value should be at most this.")
    reason: str = Field(default="", description="The reason, in one CamelCase word.")
    message: str = Field(default="", description="The reason in one sentence, with the numbers.")
    limited_by: str = Field(
        default="",
        description="What limits replicas: a field, such as spec.maxReplicas; what the next one lacks, in words; or "
        "signals, if there are no new measurements.",
    )
    estimated: str = Field(
        default="", alias="learnt", description="The service time estimated from measurements, in words."
    )
    out_of_memory: OutOfMemoryStatus | None = Field(
        default=None, description="What was reduced because memory ran out."
    )
    last_scale_time: str | None = Field(default=None, description="When it last changed, RFC 3339.")
    history: tuple[ScalingChange, ...] = Field(default=(), description="The last ten changes, newest first.")


class BottleneckStatus(StatusPart):
    """What limits requests."""

    stage: str = Field(description="The model that limits requests, by its resource's name: itself, or that of a step.")
    kind: Annotated[str, camel_case(64)] = Field(description="The rule that applies, such as StarvedStage.")
    evidence: str = Field(default="", description="The measurements, with the thresholds.")
    advice: str = Field(default="", description="What to do, and whether Argosy does it by itself.")
    share: MeasuredShare | None = Field(
        default=None, description="The stage's share of an ensemble's latency, if it is known."
    )
    since: str | None = Field(default=None, description="When it began, RFC 3339.")
    measured: str | None = Field(default=None, description="When the evidence was measured, RFC 3339.")


class LanguageStatus(StatusPart):
    """What the engines of a language model do, all its servers together, over about half a minute."""

    tokens_per_second: Int = Field(default=0, ge=0, description="Tokens that are generated each second.")
    prompt_tokens_per_second: Int | None = Field(
        default=None, ge=0, description="Tokens of prompts that are received each second."
    )
    cached: MeasuredShare | None = Field(
        default=None, description="The share of the prompts' tokens that prefix caches had."
    )
    first_token: Number | None = Field(
        default=None, description="Seconds from a request to its first token, of 95 in 100 requests at most."
    )
    between_tokens: Number | None = Field(
        default=None, description="Seconds from one token of a request to the next one, 95 in 100 times at most."
    )
    running: Int | None = Field(default=None, ge=0, description="Requests that are generated for.")
    waiting: Int | None = Field(default=None, ge=0, description="Requests that wait in engines.")
    kv_cache: MeasuredShare | None = Field(
        default=None, description="The share of the KV cache in use, of the engine where it is highest."
    )
    measured: str | None = Field(default=None, description="When it was measured, RFC 3339.")
