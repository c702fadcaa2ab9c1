"""Rules of batching: one scheduler, preferred sizes within the largest batch, a batch dimension."""

from collections.abc import Iterator

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.values.base import Fault, Rule


def _one_scheduler(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.batching is not None and spec.sequence is not None:
        yield Fault("batching and sequence exclude each other: a model has one scheduler; keep one", ("sequence",))


def _preferred_sizes(spec: InferenceModelFields) -> Iterator[Fault]:
    preferred: list[tuple[tuple[str, ...], tuple[int, ...]]] = []
    if spec.batching is not None:
        preferred.append((("batching",), spec.batching.preferred_batch_sizes))
    if spec.sequence is not None and spec.sequence.oldest is not None:
        preferred.append((("sequence", "oldest"), spec.sequence.oldest.preferred_batch_sizes))
    for path, sizes in preferred:
        for index, size in enumerate(sizes):
            if spec.max_batch_size is None:
                yield Fault(f"needs a maxBatchSize of {size} or more; set it", (*path, "preferredBatchSizes", index))
            elif size > spec.max_batch_size:
                yield Fault(
                    f"is {size}, more than maxBatchSize {spec.max_batch_size}; lower it or raise maxBatchSize",
                    (*path, "preferredBatchSizes", index),
                )


def _scalars_need_a_batch(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.batch_size != 0:
        return
    for field, tensors in (("inputs", spec.inputs), ("outputs", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.reshape is not None and not tensor.reshape.shape:
                yield Fault(
                    "an empty shape needs the batch dimension; set maxBatchSize to 1 or more",
                    (field, index, "reshape", "shape"),
                )


def _ragged_needs_a_batch(spec: InferenceModelFields) -> Iterator[Fault]:
    if spec.batch_size != 0:
        return
    for index, tensor in enumerate(spec.inputs):
        if tensor.allow_ragged_batch:
            yield Fault(
                "there is no batch to be ragged while maxBatchSize is 0; set it, or leave this out",
                ("inputs", index, "allowRaggedBatch"),
            )


BATCH_RULES: tuple[Rule, ...] = (
    Rule(
        ("batching", "sequence"),
        _one_scheduler,
        cel="!(has(self.batching) && has(self.sequence))",
        says="batching and sequence exclude each other; keep one",
    ),
    Rule(
        ("batching", "sequence", "max_batch_size"),
        _preferred_sizes,
        cel="!has(self.batching) || !has(self.batching.preferredBatchSizes) || "
        "self.batching.preferredBatchSizes.all(size, has(self.maxBatchSize) && size <= self.maxBatchSize)",
        says="a preferred batch size is at most maxBatchSize",
    ),
    Rule(("inputs", "outputs", "max_batch_size", "model_format", "engine"), _scalars_need_a_batch),
    Rule(("inputs", "max_batch_size", "model_format", "engine"), _ragged_needs_a_batch),
)
