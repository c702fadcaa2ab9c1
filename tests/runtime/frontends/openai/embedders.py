"""A data plane with models that make embeddings of texts: the lengths of what they were asked."""

import asyncio

import numpy as np
import orjson
from tests.runtime.frontends.openai.engine import LanguagePlane, Running
from tritonclient.grpc import model_config_pb2 as mc

from argosy_runtime.errors import invalid
from argosy_runtime.language.tensors import EMBEDDING_INPUTS, EMBEDDING_OUTPUTS, completed
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.modelconfig import config_type
from argosy_runtime.tensors import string_elements

SIZE = 4


def plain(name: str) -> mc.ModelConfig:
    """Return the configuration of a model with a batch dimension that takes texts alone."""
    config = mc.ModelConfig(name=name, platform="ensemble", max_batch_size=8)
    config.input.add(name="text_input", data_type=config_type("BYTES"), dims=[1])
    config.output.add(name="embedding", data_type=config_type("FP32"), dims=[SIZE])
    return config


class EmbeddingPlane(LanguagePlane):
    """Models `pooling`, by the contract, and `plain`, a pipeline."""

    def __init__(self) -> None:
        super().__init__()
        pooling = completed(mc.ModelConfig(name="pooling"), inputs=EMBEDDING_INPUTS, outputs=EMBEDDING_OUTPUTS)
        self.configs = {"pooling": pooling, "plain": plain("plain"), "talker": self.configs["talker"]}

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests.append(request)
        running = Running.__new__(Running)
        task = asyncio.get_running_loop().create_task(self._answer(request, deliver, len(self.requests)))
        running.__init__(self, task)  # type: ignore[misc]
        return running

    async def _answer(self, request: InferRequest, deliver: Deliver, number: int) -> None:
        for _ in range(8 - number % 8):  # answers come in another order than requests
            await asyncio.sleep(0)
        (tensor,) = request.inputs.values()
        count, size = self._size(tensor), SIZE
        if count > 100:
            error = invalid("This model's maximum context length is 100 tokens")
            deliver(InferResponse(request.model_name, "1", request.id, error=error))
            return
        if tensor.name == "embedding_request":
            document = orjson.loads(string_elements(tensor.array)[0])
            count, size = len(document["input"]), document["pooling_params"]["dimensions"]
        outputs = {
            "embedding": Tensor("embedding", "FP32", np.full((1, size), count / 8, np.float32)),
            "num_input_tokens": Tensor("num_input_tokens", "UINT32", np.array([count], np.uint32)),
        }
        requested = [outputs[name] for name in request.requested_outputs]
        deliver(InferResponse(request.model_name, "1", request.id, requested, final=True))

    def _size(self, tensor: Tensor) -> int:
        return len(string_elements(tensor.array)[0]) if tensor.datatype == "BYTES" else tensor.array.size
