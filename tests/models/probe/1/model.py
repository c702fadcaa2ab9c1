"""Runs the statements of CODE, and answers `result` as they left it, or the exception that they raised."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.arguments = args

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
        names = {"pb_utils": pb_utils, "np": np, "json": json, "request": request, "model": self, "result": None}
        try:
            exec(code, names)
            text = json.dumps(names["result"])
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        return pb_utils.InferenceResponse([pb_utils.Tensor("RESULT", np.array([text.encode()], dtype=object))])
