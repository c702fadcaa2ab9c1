"""The way back of `reshape`: what a model answers in its own shapes becomes what its configuration declares.

The way there is `scheduling.admission`'s. Both stand before every backend, so none needs to know of `reshape`.
"""

from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelOutput

from argosy_runtime.errors import internal
from argosy_runtime.messages import Deliver, InferResponse, Tensor
from argosy_runtime.modelconfig import shapes


class OutputShapes:
    """The outputs of one model that have a `reshape`."""

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._batches = config.max_batch_size > 0
        self._reshaped = {output.name: output for output in config.output if output.HasField("reshape")}

    def before(self, deliver: Deliver) -> Deliver:
        """Return `deliver` preceded by the reshape of outputs; `deliver` itself where no output is reshaped."""
        if not self._reshaped:
            return deliver

        def restored(response: InferResponse) -> None:
            self._restore(response)
            deliver(response)

        return restored

    def _restore(self, response: InferResponse) -> None:
        if response.is_empty:
            return
        try:
            response.outputs = [self._declared(tensor) for tensor in response.outputs]
        except ValueError as error:
            response.outputs, response.error = [], internal(str(error))

    def _declared(self, tensor: Tensor) -> Tensor:
        output = self._reshaped.get(tensor.name)
        if output is None:
            return tensor
        batch, inner = (tensor.shape[:1], tensor.shape[1:]) if self._batches else ((), tensor.shape)
        if len(inner) != len(output.reshape.shape):
            return tensor
        target = (*batch, *shapes.reshape(output.reshape.shape, output.dims, inner))
        try:
            return tensor.reshaped(target)
        except ValueError:
            raise ValueError(self._misfit(output, tensor)) from None

    def _misfit(self, output: ModelOutput, tensor: Tensor) -> str:
        own = shapes.full_shape(output.reshape.shape, int(self._batches))
        return (
            f"model '{self._model}', output '{output.name}': the model returned shape "
            f"{shapes.shape_text(tensor.shape)}, and its configuration says {shapes.shape_text(own)}"
        )
