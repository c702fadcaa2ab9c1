"""Sends its inputs as a sequence to another model, and answers that model's answers."""

import numpy as np
import triton_python_backend_utils as pb_utils

SEQUENCE = 4711


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        sums = []
        for index, value in enumerate(values):
            start = pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if index == 0 else 0
            end = pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if index == len(values) - 1 else 0
            call = pb_utils.InferenceRequest(
                model_name="sequence_sum",
                correlation_id=SEQUENCE,
                flags=start | end,
                inputs=[pb_utils.Tensor("IN", np.array([[value]], np.int32))],
                requested_output_names=["SUM"],
            )
            answer = call.exec()
            if answer.has_error():
                return pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.error().message()))
            sums.append(pb_utils.get_output_tensor_by_name(answer, "SUM").as_numpy().reshape(-1)[0])
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUMS", np.array(sums, np.int32))])
