"""Calls `identity` with its input, and answers that model's answer."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._forward(request) for request in requests]

    def _forward(self, request):
        call = pb_utils.InferenceRequest(
            model_name="identity",
            inputs=[pb_utils.get_input_tensor_by_name(request, "INPUT0")],
            requested_output_names=["OUTPUT0"],
        )
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.error().message()))
        return pb_utils.InferenceResponse([pb_utils.get_output_tensor_by_name(answer, "OUTPUT0")])
