"""Returns FIRST."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        firsts = [pb_utils.get_input_tensor_by_name(request, "FIRST").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", first)]) for first in firsts]
