"""Sleeps for SECONDS, and answers when it began and when it ended."""

import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        begun = time.monotonic()
        time.sleep(float(pb_utils.get_input_tensor_by_name(request, "SECONDS").as_numpy()[0]))
        return pb_utils.InferenceResponse([pb_utils.Tensor("TIMES", np.array([begun, time.monotonic()]))])
