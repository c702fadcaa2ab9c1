"""Numbers that no server can serve: choices that do not exist, and more instances, slots or warm-ups than fit."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import Violation

MOST_INSTANCES: Final = 4096
"""Instances of one group, on each of its GPUs."""
MOST_SLOTS: Final = 1 << 18
"""Sequences that all instances of a model may run at a time."""
MOST_WARM_UPS: Final = 1 << 16
"""Repetitions of one sample of a warm-up."""


def check_numbers(config: ModelConfig) -> Iterator[Violation]:
    """Check that every choice, such as an instance group's kind, is one that there is."""
    yield from _unknown_numbers(config, "")


def check_sizes(config: ModelConfig) -> Iterator[Violation]:
    """Check the counts for which a server reserves memory before the first request."""
    count = 0
    for index, group in enumerate(config.instance_group):
        count += group.count
        if group.count > MOST_INSTANCES:
            yield _too_many(f"instance_group[{index}].count", group.count, MOST_INSTANCES, config)
    yield from _check_slots(config, max(1, count))
    for index, sample in enumerate(config.model_warmup):
        if sample.count > MOST_WARM_UPS:
            yield _too_many(f"model_warmup[{index}].count", sample.count, MOST_WARM_UPS, config)


def _check_slots(config: ModelConfig, instances: int) -> Iterator[Violation]:
    strategy = config.sequence_batching.WhichOneof("strategy_choice")
    if strategy is None:
        return
    path, slots = "max_batch_size", config.max_batch_size
    if strategy == "oldest":
        path, slots = (
            "sequence_batching.oldest.max_candidate_sequences",
            config.sequence_batching.oldest.max_candidate_sequences,
        )
    if slots * instances > MOST_SLOTS:
        yield _too_many(path, slots, MOST_SLOTS // instances, config, " with this many instances")


def _too_many(path: str, count: int, most: int, config: ModelConfig, more: str = "") -> Violation:
    return Violation(path, f"{count} is more than the {most} that are allowed{more} for {config.name}")


def _unknown_numbers(message: Message, path: str) -> Iterator[Violation]:
    for field, value in message.ListFields():
        where = f"{path}.{field.name}" if path else field.name
        for at, one in _members(field, value, where):
            if isinstance(one, Message):
                yield from _unknown_numbers(one, at)
            elif field.enum_type is not None and one not in field.enum_type.values_by_number:
                yield Violation(at, f"{one} is no value of {field.enum_type.name}")


def _members(field: FieldDescriptor, value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of a field that may be choices or hold some, with their paths."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            yield from ((f"{where}[{key}]", value[key]) for key in sorted(value))
    elif field.message_type is None and field.enum_type is None:
        return
    elif field.is_repeated:
        yield from ((f"{where}[{index}]", one) for index, one in enumerate(value))
    else:
        yield where, value
