"""Answers its input behind the id of its sequence."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        names = ("CORRID", "IN")
        tensors = [pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in names]
        text = b":".join(tensor.reshape(-1)[0] for tensor in tensors)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], np.object_))])
