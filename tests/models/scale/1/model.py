"""Answers its input times the configuration's parameter `factor`."""

import json

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.factor = int(parameters["factor"]["string_value"])

    def execute(self, requests):
        return [self._scale(request) for request in requests]

    def _scale(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array * array.dtype.type(self.factor))])
