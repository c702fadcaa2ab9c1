"""Answers which slots of its batch have a request, and what the controls of this one are."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        ready = [int(self._scalar(request, "READY")) for request in requests]
        return [self._answer(request, ready) for request in requests]

    def _answer(self, request, ready):
        controls = [float(self._scalar(request, name)) for name in ("START", "END", "CORRID")]
        seen = np.array([[*controls, request.flags(), request.correlation_id()]], np.float32)
        slots = np.array([ready], np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("READY_SLOTS", slots), pb_utils.Tensor("SEEN", seen)])

    def _scalar(self, request, name):
        return pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0]
