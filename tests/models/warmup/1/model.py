"""Answers how many requests, and how large a batch, it saw before its first real one."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.requests = 0
        self.largest = 0

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        seen = np.repeat(np.array([[self.requests, self.largest]], np.int32), len(array), axis=0)
        if not (array == -1).any():
            self.requests += 1
            self.largest = max(self.largest, len(array))
        return pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", seen)])
