"""Calls the model that MODEL names with its inputs, and answers that model's answer."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._forward(request) for request in requests]

    def _forward(self, request):
        name = pb_utils.get_input_tensor_by_name(request, "MODEL").as_numpy()[0].decode()
        call = pb_utils.InferenceRequest(
            model_name=name,
            inputs=[pb_utils.get_input_tensor_by_name(request, tensor) for tensor in ("INPUT0", "INPUT1")],
            requested_output_names=["OUTPUT0", "OUTPUT1"],
        )
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.error().message()))
        return pb_utils.InferenceResponse(
            [pb_utils.get_output_tensor_by_name(answer, name) for name in ("OUTPUT0", "OUTPUT1")]
        )
