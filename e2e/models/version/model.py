"""Answers which version it is, so that a client can tell who answered. The parameter LOAD_S makes loading slow, WORK_S
each execution, without any work. FAILS is the share of requests that fail, and with CRASHES its process ends at the
first request.
"""

import json
import os
import random
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        time.sleep(float(parameters.get("LOAD_S", {}).get("string_value", "0")))
        self._work_s = float(parameters.get("WORK_S", {}).get("string_value", "0"))
        self._fails = float(parameters.get("FAILS", {}).get("string_value", "0"))
        self._crashes = "CRASHES" in parameters
        self._version = np.array([int(args["model_version"])], np.int32)

    def execute(self, requests):
        if self._crashes:
            os._exit(1)
        time.sleep(self._work_s)
        return [self._answer() for _ in requests]

    def _answer(self):
        if random.random() < self._fails:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("it fails"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("VERSION", self._version)])
