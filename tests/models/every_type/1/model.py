"""Answers each input it is given, IN_<type>, as OUT_<type>."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse(self._echo(request)) for request in requests]

    def _echo(self, request):
        return [pb_utils.Tensor(tensor.name().replace("IN_", "OUT_"), tensor.as_numpy()) for tensor in request.inputs()]
