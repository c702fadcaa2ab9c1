"""Clients send one number per row and the model sees a vector: answers it, and the rank it arrived with."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        rank = np.full((len(array), 1), array.ndim, np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array), pb_utils.Tensor("RANK", rank)])
