"""A data plane with pipelines that are chat models: by name, what they answer and what they were requested."""

import asyncio
import json

import numpy as np
from tests.runtime.frontends.openai.engine import LanguagePlane, Running
from tritonclient.grpc import model_config_pb2 as mc

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.modelconfig import config_type
from argosy_runtime.tensors import string_array, string_elements

TEXT = "Grüße 🙂"
INPUTS = {
    "question": "BYTES",
    "rules": "BYTES",
    "dialog": "BYTES",
    "how": "BYTES",
    "limit": "INT32",
    "live": "BOOL",
}
OUTPUTS = {"answer": "BYTES", "blocked": "BOOL", "why": "BYTES", "requested": "UINT32", "said": "INT32"}
FULL = {
    "prompt": "question",
    "system": "rules",
    "messages": "dialog",
    "sampling_parameters": "how",
    "max_tokens": "limit",
    "stream": "live",
    "text": "answer",
    "refused": "blocked",
    "finish_reason": "why",
    "prompt_tokens": "requested",
    "completion_tokens": "said",
}
SMALL = {"prompt": "question", "text": "answer", "refused": "blocked"}


def pipeline(name: str, chat: dict[str, str], batch: int) -> mc.ModelConfig:
    """Return the configuration of an ensemble with these tensors of a chat."""
    config = mc.ModelConfig(name=name, platform="ensemble", max_batch_size=batch)
    for side, tensors in ((config.input, INPUTS), (config.output, OUTPUTS)):
        for tensor, datatype in tensors.items():
            side.add(name=tensor, data_type=config_type(datatype), dims=[1])
    config.parameters["chat"].string_value = json.dumps(chat)
    return config


class PipelinePlane(LanguagePlane):
    """Pipelines `full`, with all parts of a chat, and `small`, whose tensors have no batch dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.configs = {"full": pipeline("full", FULL, 1), "small": pipeline("small", SMALL, 0)}

    def reset(self) -> None:
        super().reset()
        self.pieces = [TEXT.encode()[at : at + 1] for at in range(len(TEXT.encode()))]
        self.blocked = False
        self.why = "length"
        self.error: ServingError | None = None

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        self.requests.append(request)
        running = Running.__new__(Running)
        task = asyncio.get_running_loop().create_task(self._answer(request, deliver))
        running.__init__(self, task)  # type: ignore[misc]
        return running

    async def _answer(self, request: InferRequest, deliver: Deliver) -> None:
        await asyncio.sleep(0)
        if self.error is not None:
            deliver(InferResponse(request.model_name, "1", request.id, error=self.error))
            return
        shape = (1, 1) if request.model_name == "full" else (1,)
        for piece in self.pieces:
            values = {
                "answer": Tensor("answer", "BYTES", string_array([piece], shape)),
                "blocked": Tensor("blocked", "BOOL", np.full(shape, self.blocked)),
                "why": Tensor("why", "BYTES", string_array([self.why.encode()], shape)),
                "requested": Tensor("requested", "UINT32", np.full(shape, 7, np.uint32)),
                "said": Tensor("said", "INT32", np.full(shape, 1, np.int32)),
            }
            outputs = [values[name] for name in request.requested_outputs]
            deliver(InferResponse(request.model_name, "1", request.id, outputs, final=False))
            await asyncio.sleep(0)
        deliver(InferResponse(request.model_name, "1", request.id, [], final=True))

    def requested(self) -> dict[str, object]:
        """Return the inputs of the last request as values."""
        inputs = self.requests[-1].inputs
        return {
            name: string_elements(tensor.array)[0].decode()
            if tensor.datatype == "BYTES"
            else np.asarray(tensor.array).reshape(-1)[0].item()
            for name, tensor in inputs.items()
        }
