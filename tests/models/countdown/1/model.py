"""Releases a request to be scheduled again IN times, then answers the START of each of its executions."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.steps = {}

    def execute(self, requests):
        return [self._count(request) for request in requests]

    def _count(self, request):
        sequence, start, more = (self._scalar(request, name) for name in ("CORRID", "START", "IN"))
        if start:
            self.steps[sequence] = []
        steps = self.steps[sequence]
        steps.append(start)
        if len(steps) <= more:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        del self.steps[sequence]
        return pb_utils.InferenceResponse([pb_utils.Tensor("STEPS", np.array([steps], np.int32))])

    def _scalar(self, request, name):
        return int(pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0])
