"""Calls `double` twice, once with its request's trace, and answers with the trace's context."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._call(request) for request in requests]

    def _call(self, request):
        x = pb_utils.Tensor("X", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())
        for traced in ({"trace": request.trace()}, {}):
            called = pb_utils.InferenceRequest(
                model_name="double", inputs=[x], requested_output_names=["Y"], request_id="of the caller", **traced
            )
            answer = called.exec()
        y = pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy()
        context = np.array([[str(request.trace().get_context())]], np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", y), pb_utils.Tensor("CONTEXT", context)])
