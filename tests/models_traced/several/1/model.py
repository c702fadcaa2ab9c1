"""Answers three times."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            sender = request.get_response_sender()
            for times in (1, 2, 3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * x.dtype.type(times))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
