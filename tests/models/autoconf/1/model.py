"""Has no config.pbtxt: says its own inputs and outputs."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_input({"name": "BIAS", "data_type": "TYPE_FP32", "dims": [1], "optional": True})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [self._negate(request) for request in requests]

    def _negate(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        bias = pb_utils.get_input_tensor_by_name(request, "BIAS")
        answer = -array if bias is None else bias.as_numpy() - array
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", answer)])
