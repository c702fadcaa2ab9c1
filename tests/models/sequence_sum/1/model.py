"""Answers the sum of its sequence's inputs so far."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self._add(request) for request in requests]

    def _add(self, request):
        sequence = self._scalar(request, "CORRID")
        before = 0 if self._scalar(request, "START") else self.sums[sequence]
        self.sums[sequence] = before + self._scalar(request, "IN")
        answer = self.sums[sequence]
        if self._scalar(request, "END"):
            del self.sums[sequence]
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", np.array([[answer]], np.int32))])

    def _scalar(self, request, name):
        return int(pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0])
