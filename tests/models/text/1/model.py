"""Answers its text, repeated, and the parameter `suffix` after it."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
        times = pb_utils.get_input_tensor_by_name(request, "repetitions")
        count = 1 if times is None else int(times.as_numpy().reshape(-1)[0])
        suffix = str(json.loads(request.parameters() or "{}").get("suffix", "")).encode()
        answers = np.array([[row[0] * count + suffix] for row in text], np.object_)
        lengths = np.array([[len(row[0])] for row in answers], np.int64)
        return pb_utils.InferenceResponse([pb_utils.Tensor("text_output", answers), pb_utils.Tensor("length", lengths)])
