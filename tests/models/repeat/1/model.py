"""Answers one response per element of IN, in order; none where IN is empty."""

import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._send(request)

    def _send(self, request):
        sender = request.get_response_sender()
        delay = pb_utils.get_input_tensor_by_name(request, "DELAY_MS")
        values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        for index, value in enumerate(values):
            if delay is not None:
                time.sleep(int(delay.as_numpy()[0]) / 1000)
            out = pb_utils.Tensor("OUT", np.array([value], np.int32))
            idx = pb_utils.Tensor("IDX", np.array([index], np.uint32))
            sender.send(pb_utils.InferenceResponse([out, idx]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
