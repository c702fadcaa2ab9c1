"""A model's tensors: names, data types and shapes, with the meaning of `config.pbtxt`."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from argosy.api.values.base import ApiModel, Fault, Flag, Int, Rule
from argosy.api.values.storage import RelativePath
from argosy_runtime.modelconfig.shapes import WILDCARD, segment_counts

MAX_TENSORS = 128
BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""The schema's words for a list whose entries are told apart by their names."""


class DataType(StrEnum):
    """ModelConfig's tensor data types."""

    BOOL = "TYPE_BOOL"
    UINT8 = "TYPE_UINT8"
    UINT16 = "TYPE_UINT16"
    UINT32 = "TYPE_UINT32"
    UINT64 = "TYPE_UINT64"
    INT8 = "TYPE_INT8"
    INT16 = "TYPE_INT16"
    INT32 = "TYPE_INT32"
    INT64 = "TYPE_INT64"
    FP16 = "TYPE_FP16"
    FP32 = "TYPE_FP32"
    FP64 = "TYPE_FP64"
    STRING = "TYPE_STRING"
    BF16 = "TYPE_BF16"


class TensorFormat(StrEnum):
    """The order of an image's axes."""

    NONE = "FORMAT_NONE"
    NHWC = "FORMAT_NHWC"
    NCHW = "FORMAT_NCHW"


def _dim(value: int) -> int:
    if value < 1 and value != WILDCARD:
        raise ValueError(f"dimension must be 1 or more, or -1 for any size; found {value}")
    return value


_NOT_ZERO: dict[str, Any] = {"rule": "self != 0", "message": "a dimension is 1 or more, or -1 for any size"}
Dim = Annotated[
    Int,
    Field(json_schema_extra={"minimum": -1, "x-kubernetes-validations": [_NOT_ZERO]}),
    AfterValidator(_dim),
]
"""A dimension: 1 or more, or -1 for any size."""

_TENSOR_NAME = Field(min_length=1, max_length=256, description="The tensor's name in the model.")
_DIMS = Field(
    min_length=1,
    max_length=32,
    description="The shape without the batch dimension: sizes of 1 or more, -1 for any size.",
)


class Reshape(ApiModel):
    """Another shape for the same elements."""

    shape: tuple[Dim, ...] = Field(
        max_length=32,
        description="The shape the backend sees; empty for a scalar (maxBatchSize must then be set).",
    )


def _reshape_keeps_elements(tensor: "Tensor") -> Iterator[Fault]:
    if tensor.reshape is None or segment_counts(tensor.dims) == segment_counts(tensor.reshape.shape):
        return
    yield Fault(
        f"{list(tensor.reshape.shape)} does not hold as many elements as dims {list(tensor.dims)}; "
        "give it the same product of sizes between the same number of -1",
        ("reshape", "shape"),
    )


class Tensor(ApiModel):
    """The fields of inputs and outputs."""

    name: str = _TENSOR_NAME
    data_type: DataType = Field(description="The elements' type, by its name in ModelConfig: TYPE_FP32, TYPE_STRING.")
    dims: tuple[Dim, ...] = _DIMS
    reshape: Reshape | None = Field(default=None, description="Another shape for the backend. Default: dims.")
    is_shape_tensor: Flag = Field(
        default=False, description="Whether its values are a shape for TensorRT. Default: false."
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("dims", "reshape"), _reshape_keeps_elements),)


def _images_have_three_axes(tensor: "InputTensor") -> Iterator[Fault]:
    if tensor.format is not TensorFormat.NONE and len(tensor.dims) != 3:
        yield Fault(f"{tensor.format} needs 3 dims; found {list(tensor.dims)}", ("format",))


class InputTensor(Tensor):
    """A tensor of requests."""

    format: TensorFormat = Field(
        default=TensorFormat.NONE, description="The order of an image's axes. Default: FORMAT_NONE."
    )
    optional: Flag = Field(default=False, description="Whether a request may leave it out. Default: false.")
    allow_ragged_batch: Flag = Field(
        default=False,
        description="Whether requests of different shapes share a batch, unpadded. Default: false.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        *Tensor.rules,
        Rule(("format", "dims"), _images_have_three_axes),
    )


class OutputTensor(Tensor):
    """A tensor of responses."""

    label_filename: RelativePath = Field(
        default="",
        description="A file in the model's folder with one class label per line. Default: no labels.",
    )


def unique_names(reads: str, field: str, what: str = "tensor") -> Rule:
    """Return the rule that the tensors (or `what`) in attribute `reads`, in manifests `field`, have different names."""

    def check(model: ApiModel) -> Iterator[Fault]:
        seen: dict[str, int] = {}
        for index, tensor in enumerate(getattr(model, reads)):
            if tensor.name in seen:
                yield Fault(
                    f"{tensor.name!r} is already {field}[{seen[tensor.name]}]; give each {what} its own name",
                    (field, index, "name"),
                )
            seen.setdefault(tensor.name, index)

    return Rule((reads,), check)
