"""Returns IN as A where it is odd, and as B where it is more than 1: so both, one of them, or none."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        value = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        outputs = []
        if value.item() % 2:
            outputs.append(pb_utils.Tensor("A", value))
        if value.item() > 1:
            outputs.append(pb_utils.Tensor("B", value))
        return pb_utils.InferenceResponse(outputs)
