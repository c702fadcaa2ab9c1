"""Answers its input sixteen times, as a stream."""

import triton_python_backend_utils as pb_utils

ANSWERS = 16


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._send(request)

    def _send(self, request):
        sender = request.get_response_sender()
        tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
        for _ in range(ANSWERS):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", tensor.as_numpy())]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
