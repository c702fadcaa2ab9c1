"""Sequence batching: requests that belong together reach the same instance, in order."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from argosy.api.model.batching.dynamic import BatchFormation, Microseconds
from argosy.api.values.base import ApiModel, Fault, Flag, Int, Number, Rule
from argosy.api.values.tensors import DataType, Dim


class ControlKind(StrEnum):
    """What a control tensor reports to the model."""

    START = "CONTROL_SEQUENCE_START"
    READY = "CONTROL_SEQUENCE_READY"
    END = "CONTROL_SEQUENCE_END"
    CORRID = "CONTROL_SEQUENCE_CORRID"


CORRELATION_TYPES = (DataType.UINT64, DataType.INT64, DataType.UINT32, DataType.INT32, DataType.STRING)
FLAG_TYPES = (DataType.INT32, DataType.FP32, DataType.BOOL)


def _control_type(control: "Control") -> Iterator[Fault]:
    allowed = CORRELATION_TYPES if control.kind is ControlKind.CORRID else FLAG_TYPES
    if control.data_type not in allowed:
        names = ", ".join(allowed)
        yield Fault(f"{control.kind} is given as one of {names}; found {control.data_type}", ("dataType",))


def _two_values(control: "Control") -> Iterator[Fault]:
    if control.false_true is None:
        return
    if control.kind is ControlKind.CORRID:
        yield Fault("a correlation ID has no values for false and true; leave it out", ("falseTrue",))
    elif control.data_type is DataType.INT32 and any(not float(value).is_integer() for value in control.false_true):
        yield Fault("TYPE_INT32 needs whole numbers; use dataType: TYPE_FP32 for others", ("falseTrue",))
    elif control.data_type is DataType.BOOL and set(control.false_true) != {0, 1}:
        yield Fault("TYPE_BOOL has the values 0 and 1, in either order", ("falseTrue",))


class Control(ApiModel):
    """A tensor in which the scheduler reports the position in a sequence to the model."""

    name: str = Field(min_length=1, max_length=256, description="The model's input that receives it.")
    kind: ControlKind = Field(description="What it reports: the start, readiness, the end, or the correlation ID.")
    data_type: DataType = Field(
        default=DataType.FP32,
        description="TYPE_INT32, TYPE_FP32 or TYPE_BOOL, or the correlation ID's type. Default: TYPE_FP32.",
    )
    false_true: tuple[Number, ...] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="The two values that mean false and true. Default: 0 and 1.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("kind", "data_type"), _control_type),
        Rule(("kind", "data_type", "false_true"), _two_values),
    )


def _one_initial_value(initial: "InitialState") -> Iterator[Fault]:
    if initial.zero_data == bool(initial.data_file):
        yield Fault("set exactly one of zeroData: true and dataFile")


class InitialState(ApiModel):
    """The value of a state when a sequence starts."""

    name: str = Field(min_length=1, max_length=256, description="The initial state's name.")
    data_type: DataType = Field(description="The elements' type.")
    dims: tuple[Dim, ...] = Field(min_length=1, max_length=32, description="The shape, without the batch dimension.")
    zero_data: Flag = Field(default=False, description="Whether it is all zeros. Default: false.")
    data_file: str = Field(default="", max_length=253, description="A file below the model's `initial_state` folder.")

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("zero_data", "data_file"), _one_initial_value),)


class State(ApiModel):
    """A tensor that the server keeps between a sequence's requests."""

    input_name: str = Field(min_length=1, max_length=256, description="The model's input that receives it.")
    output_name: str = Field(min_length=1, max_length=256, description="The model's output with its next value.")
    data_type: DataType = Field(description="The elements' type.")
    dims: tuple[Dim, ...] = Field(min_length=1, max_length=32, description="The shape, without the batch dimension.")
    initial_state: tuple[InitialState, ...] = Field(
        default=(),
        max_length=1,
        description="The value at a sequence's start. Default: whatever the model writes at START.",
    )


class Direct(ApiModel):
    """Each sequence has a batch slot of its own until it ends."""

    max_queue_delay_microseconds: Microseconds = Field(
        default=0, description="How long to wait for more sequences, in microseconds. Default: 0."
    )
    minimum_slot_utilization: Number = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of slots in use below which to wait, from 0 to 1. Default: 0.",
    )


class Oldest(BatchFormation):
    """The oldest requests of different sequences share a batch."""

    max_candidate_sequences: Int = Field(
        ge=1, le=2**31 - 1, description="Sequences that one instance works on at a time."
    )


def _one_strategy(sequence: "Sequence") -> Iterator[Fault]:
    if sequence.direct is not None and sequence.oldest is not None:
        yield Fault("direct and oldest exclude each other; keep one")


class Sequence(ApiModel):
    """Sequence batching. Without `direct` or `oldest` the strategy is `direct`."""

    max_idle_microseconds: Microseconds = Field(
        default=1_000_000,
        description="How long a sequence without requests is retained, in microseconds. Default: 1000000, one second.",
    )
    direct: Direct | None = Field(default=None, description="Each sequence keeps a batch slot of its own.")
    oldest: Oldest | None = Field(default=None, description="The oldest requests of several sequences share a batch.")
    controls: tuple[Control, ...] = Field(
        default=(),
        max_length=16,
        description="Inputs in which the scheduler reports the position in a sequence to the model.",
    )
    states: tuple[State, ...] = Field(
        default=(), max_length=64, description="Tensors that the server keeps between a sequence's requests."
    )
    iterative: Flag = Field(
        default=False,
        description="Whether the backend may put a request back to be scheduled again. Default: false.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("direct", "oldest"),
            _one_strategy,
            cel="!(has(self.direct) && has(self.oldest))",
            says="direct and oldest exclude each other; keep one",
        ),
    )
