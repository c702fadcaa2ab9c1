"""OUTPUT0 is the sum of its inputs, OUTPUT1 their difference."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        left = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        right = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
        answers = {"OUTPUT0": left + right, "OUTPUT1": left - right}
        requested = request.requested_output_names()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, array) for name, array in answers.items() if name in requested]
        )
