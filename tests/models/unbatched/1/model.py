"""A model without batching: MATRIX times FACTOR, and the shape in which MATRIX arrived."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._multiply(request) for request in requests]

    def _multiply(self, request):
        matrix = pb_utils.get_input_tensor_by_name(request, "MATRIX").as_numpy()
        factor = pb_utils.get_input_tensor_by_name(request, "FACTOR").as_numpy()
        out = pb_utils.Tensor("OUT", matrix.astype(np.float64) * factor)
        shape = pb_utils.Tensor("SHAPE", np.array(matrix.shape, np.int64))
        return pb_utils.InferenceResponse([out, shape])
