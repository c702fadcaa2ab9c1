"""An API tensor becomes ModelConfig's input or output."""

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.values.tensors import InputTensor, OutputTensor


def tensor_input(tensor: InputTensor) -> pb.ModelInput:
    """Return a tensor that a request brings."""
    rendered = pb.ModelInput(
        name=tensor.name,
        data_type=pb.DataType.Value(tensor.data_type),
        format=pb.ModelInput.Format.Value(tensor.format),
        dims=tensor.dims,
        optional=tensor.optional,
        allow_ragged_batch=tensor.allow_ragged_batch,
        is_shape_tensor=tensor.is_shape_tensor,
    )
    if tensor.reshape is not None:
        rendered.reshape.CopyFrom(pb.ModelTensorReshape(shape=tensor.reshape.shape))
    return rendered


def tensor_output(tensor: OutputTensor) -> pb.ModelOutput:
    """Return a tensor that a response brings."""
    rendered = pb.ModelOutput(
        name=tensor.name,
        data_type=pb.DataType.Value(tensor.data_type),
        dims=tensor.dims,
        label_filename=tensor.label_filename,
        is_shape_tensor=tensor.is_shape_tensor,
    )
    if tensor.reshape is not None:
        rendered.reshape.CopyFrom(pb.ModelTensorReshape(shape=tensor.reshape.shape))
    return rendered
