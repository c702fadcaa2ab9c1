"""Sequence batching's control tensors: START, READY, END are two values, CORRID has a type."""

from collections.abc import Iterator
from dataclasses import dataclass

from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelSequenceBatching

from argosy_runtime.modelconfig.errors import Violation

_Control = ModelSequenceBatching.Control
_BOOLEAN_KINDS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY")
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRID = "CONTROL_SEQUENCE_CORRID"
_CORRID_TYPES = (pb.TYPE_UINT64, pb.TYPE_INT64, pb.TYPE_UINT32, pb.TYPE_INT32, pb.TYPE_STRING)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A control with its path."""

    path: str
    control: ModelSequenceBatching


def check_control_inputs(config: ModelConfig) -> Iterator[Violation]:
    """Check that control tensors have unique names, and kinds appear once with valid values."""
    if not config.HasField("sequence_batching"):
        return
    yield from _check_names(config)
    for kind in _BOOLEAN_KINDS:
        placed = _of_kind(config, kind)
        yield from _check_single(config, kind, placed)
        for one in placed:
            yield from _check_values(config, kind, one)
    placed = _of_kind(config, _CORRID)
    yield from _check_single(config, _CORRID, placed)
    for one in placed:
        yield from _check_corrid(config, one)


def _check_names(config: ModelConfig) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, control_input in enumerate(config.sequence_batching.control_input):
        path = f"sequence_batching.control_input[{index}].name"
        if not control_input.name:
            message = f"sequence batching control tensor must have a name for {config.name}"
            yield Violation(path, message)
        elif control_input.name in seen:
            yield Violation(
                path,
                f"sequence batching control tensor '{control_input.name}' is specified for multiple control "
                f"kinds for {config.name}",
            )
        seen.add(control_input.name)


def _of_kind(config: ModelConfig, kind: str) -> list[_Placed]:
    return [
        _Placed(f"sequence_batching.control_input[{i}].control[{j}]", control)
        for i, control_input in enumerate(config.sequence_batching.control_input)
        for j, control in enumerate(control_input.control)
        if control.kind == _Control.Kind.Value(kind)
    ]


def _check_single(config: ModelConfig, kind: str, placed: list[_Placed]) -> Iterator[Violation]:
    for one in placed[1:]:
        message = f"sequence batching specifies multiple {kind} tensors for {config.name}"
        yield Violation(f"{one.path}.kind", message)


def _check_values(config: ModelConfig, kind: str, one: _Placed) -> Iterator[Violation]:
    present = [name for name in _VALUES if getattr(one.control, name)]
    if not present:
        yield Violation(
            one.path,
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {kind} for {config.name}",
        )
    elif len(present) > 1:
        yield Violation(
            one.path,
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
            f"'bool_false_true' for {kind} for {config.name}",
        )
    elif len(getattr(one.control, present[0])) != 2:
        yield Violation(
            f"{one.path}.{present[0]}",
            f"sequence batching control '{present[0]}' must have exactly 2 entries for {kind} for {config.name}",
        )


def _check_corrid(config: ModelConfig, one: _Placed) -> Iterator[Violation]:
    if any(getattr(one.control, name) for name in _VALUES):
        yield Violation(
            one.path,
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
            f"'bool_false_true' for {_CORRID} for {config.name}",
        )
    if one.control.data_type not in _CORRID_TYPES:
        yield Violation(
            f"{one.path}.data_type",
            f"unexpected data type for control {_CORRID} for {config.name}. Allowed data types are "
            "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
        )
