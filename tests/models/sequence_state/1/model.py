"""Adds its input to the state of its sequence, which the server keeps."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._add(request) for request in requests]

    def _add(self, request):
        names = ("STATE", "IN")
        state, value = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in names)
        outputs = [pb_utils.Tensor(name, state + value) for name in ("OUT", "STATE_OUT")]
        return pb_utils.InferenceResponse(outputs)
