"""Returns the names of the inputs that it got, with their values."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        got = sorted(f"{tensor.name()}={tensor.as_numpy().item()}" for tensor in request.inputs())
        text = pb_utils.Tensor("GOT", np.array([[" ".join(got).encode()]], np.object_))
        return pb_utils.InferenceResponse([text])
