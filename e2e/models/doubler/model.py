"""Twice its input: the model of docs/how-to/kubernetes.md."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([self._double(request)]) for request in requests]

    def _double(self, request):
        return pb_utils.Tensor("double", 2 * pb_utils.get_input_tensor_by_name(request, "number").as_numpy())
