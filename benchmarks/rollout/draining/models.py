"""The models of a drained server: one that answers at once, and one that streams tokens as a language model does."""

from pathlib import Path

from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource

ECHO, TOKENS = "echo", "tokens"
TOKEN_S = 0.25
"""Seconds between two tokens of a stream."""
_ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)])
"""
_TOKENS = f"""
import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self._stream, args=(request,)).start()

    def _stream(self, request):
        sampling = pb_utils.get_input_tensor_by_name(request, "sampling_parameters").as_numpy()[0]
        sender = request.get_response_sender()
        for number in range(json.loads(sampling)["max_tokens"]):
            if request.is_cancelled():
                break
            time.sleep({TOKEN_S})
            text = np.array([f"{{number}} ".encode()], np.object_)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("text_output", text)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
_ECHO_CONFIG = """
name: "echo"
backend: "python"
input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
"""
_TOKENS_CONFIG = """
name: "tokens"
backend: "python"
model_transaction_policy { decoupled: true }
input { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] optional: true }
input { name: "messages" data_type: TYPE_STRING dims: [ 1 ] optional: true }
input { name: "stream" data_type: TYPE_BOOL dims: [ 1 ] optional: true }
input { name: "exclude_input_in_output" data_type: TYPE_BOOL dims: [ 1 ] optional: true }
input { name: "sampling_parameters" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "text_output" data_type: TYPE_STRING dims: [ -1 ] }
"""


def repository(folder: Path, server: str) -> RenderedRepository:
    """Write the files of the models, unless they are there. Return a server's repository of them."""
    models = ((ECHO, _ECHO_CONFIG, _ECHO), (TOKENS, _TOKENS_CONFIG, _TOKENS))
    return RenderedRepository(server, [_model(folder / name, config, source) for name, config, source in models])


def _model(folder: Path, config: str, source: str) -> RenderedModel:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(source)
    return RenderedModel(folder.name, config, {1: VersionSource(folder.as_uri())})
