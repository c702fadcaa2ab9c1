"""An API sequence becomes ModelConfig's sequence_batching."""

from collections.abc import Callable, Mapping

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.model.batching.sequence import Control, ControlKind, Sequence, State

ZERO_ONE = (0, 1)
"""What a control means by false and true where its values are not set."""


def sequence_batching(sequence: Sequence) -> pb.ModelSequenceBatching:
    """Return the scheduler that keeps related requests on one instance."""
    rendered = pb.ModelSequenceBatching(
        max_sequence_idle_microseconds=sequence.max_idle_microseconds,
        control_input=[_control(control) for control in sequence.controls],
        state=[_state(state) for state in sequence.states],
        iterative_sequence=sequence.iterative,
    )
    if sequence.oldest is not None:
        rendered.oldest.CopyFrom(
            pb.ModelSequenceBatching.StrategyOldest(
                max_candidate_sequences=sequence.oldest.max_candidate_sequences,
                preferred_batch_size=sequence.oldest.preferred_batch_sizes,
                max_queue_delay_microseconds=sequence.oldest.max_queue_delay_microseconds,
                preserve_ordering=sequence.oldest.preserve_ordering,
            )
        )
    elif sequence.direct is not None:
        rendered.direct.CopyFrom(
            pb.ModelSequenceBatching.StrategyDirect(
                max_queue_delay_microseconds=sequence.direct.max_queue_delay_microseconds,
                minimum_slot_utilization=sequence.direct.minimum_slot_utilization,
            )
        )
    return rendered


_FALSE_TRUE: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "TYPE_INT32": ("int32_false_true", int),
    "TYPE_FP32": ("fp32_false_true", float),
    "TYPE_BOOL": ("bool_false_true", bool),
}


def _control(control: Control) -> pb.ModelSequenceBatching.ControlInput:
    rendered = pb.ModelSequenceBatching.Control(
        kind=pb.ModelSequenceBatching.Control.Kind.Value(control.kind),
    )
    if control.kind is ControlKind.CORRID:
        rendered.data_type = pb.DataType.Value(control.data_type)
    else:
        field, number = _FALSE_TRUE[control.data_type]
        getattr(rendered, field).extend(number(value) for value in control.false_true or ZERO_ONE)
    return pb.ModelSequenceBatching.ControlInput(name=control.name, control=[rendered])


def _state(state: State) -> pb.ModelSequenceBatching.State:
    return pb.ModelSequenceBatching.State(
        input_name=state.input_name,
        output_name=state.output_name,
        data_type=pb.DataType.Value(state.data_type),
        dims=state.dims,
        initial_state=[
            pb.ModelSequenceBatching.InitialState(
                name=initial.name,
                data_type=pb.DataType.Value(initial.data_type),
                dims=initial.dims,
                **({"data_file": initial.data_file} if initial.data_file else {"zero_data": True}),
            )
            for initial in state.initial_state
        ],
    )
