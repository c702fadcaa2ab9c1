"""Answers which version it is, so that a client can tell who answered. The parameter LOAD_S makes loading slow, WORK_S
each execution, without any work.
"""

import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        time.sleep(float(parameters.get("LOAD_S", {}).get("string_value", "0")))
        self._work_s = float(parameters.get("WORK_S", {}).get("string_value", "0"))
        self._version = np.array([int(args["model_version"])], np.int32)

    def execute(self, requests):
        time.sleep(self._work_s)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("VERSION", self._version)]) for _ in requests]
