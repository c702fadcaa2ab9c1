"""Answers IN, IN - 1 … 1, one response in each execution of the request."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.left = {}

    def execute(self, requests):
        for request in requests:
            self._step(request)

    def _step(self, request):
        sequence = self._scalar(request, "CORRID")
        if self._scalar(request, "START"):
            self.left[sequence] = self._scalar(request, "IN")
        left = self.left[sequence]
        sender = request.get_response_sender()
        response = pb_utils.InferenceResponse([pb_utils.Tensor("STEP", np.array([[left]], np.int32))])
        if left > 1:
            self.left[sequence] = left - 1
            sender.send(response)
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        else:
            del self.left[sequence]
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _scalar(self, request, name):
        return int(pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0])
