"""Adds up each sequence's inputs, and answers the sum so far."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self._sum(request) for request in requests]

    def _sum(self, request):
        if not pb_utils.get_input_tensor_by_name(request, "READY").as_numpy().any():
            return pb_utils.InferenceResponse([])
        value = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        key = request.correlation_id()
        if not pb_utils.get_input_tensor_by_name(request, "START").as_numpy().any():
            value = value + self.sums[key]
        self.sums[key] = value
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END:
            del self.sums[key]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value)])
