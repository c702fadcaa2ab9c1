"""Models of the Python backend: their code, their configuration, and what they are asked."""

from typing import Any

import numpy as np

from argosy_runtime.messages import InferRequest, Tensor

CONFIG = """
name: "m" backend: "python" max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "TWICE" data_type: TYPE_FP32 dims: [ -1 ] }
"""
THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = CONFIG + "model_transaction_policy { decoupled: true }" + THREAD
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            data = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            outputs = [pb_utils.Tensor("OUT", data + 1), pb_utils.Tensor("TWICE", data * 2)]
            responses.append(pb_utils.InferenceResponse(outputs, parameters={"k": 1}))
        return responses
"""


def request(value: float = 1.0, **fields: Any) -> InferRequest:
    array = np.array([[value]], np.float32)
    return InferRequest("m", {"IN": Tensor("IN", "FP32", array)}, **fields)
