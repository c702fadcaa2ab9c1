"""Answers its input."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._echo(request) for request in requests]

    def _echo(self, request):
        tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", tensor.as_numpy())])
