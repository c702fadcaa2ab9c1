"""Answers which version it is, so that a client can tell who answered. The parameter LOAD_S makes loading slow,
UNLOAD_S unloading, WORK_S each execution, without any work. FAILS is the share of requests that fail, FAILS_EVERY the
number of requests of which the last one fails; with CRASHES its process ends at the first request, and with BROKEN it
is not loaded.
"""

import json
import math
import os
import random
import time

import numpy as np
import triton_python_backend_utils as pb_utils

PARAMETERS = ("LOAD_S", "UNLOAD_S", "WORK_S", "FAILS", "FAILS_EVERY", "CRASHES", "BROKEN")


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        numbers = {name: float(parameters[name]["string_value"]) for name in PARAMETERS if name in parameters}
        time.sleep(numbers.get("LOAD_S", 0))
        if "BROKEN" in numbers:
            raise ValueError("it is broken")
        self._work_s, self._unload_s = numbers.get("WORK_S", 0), numbers.get("UNLOAD_S", 0)
        self._fails, self._fails_every = numbers.get("FAILS", 0), numbers.get("FAILS_EVERY", math.inf)
        self._crashes = "CRASHES" in numbers
        self._version = np.array([int(args["model_version"])], np.int32)
        self._answered = 0

    def execute(self, requests):
        if self._crashes:
            os._exit(1)
        time.sleep(self._work_s)
        return [self._answer() for _ in requests]

    def finalize(self):
        time.sleep(self._unload_s)

    def _answer(self):
        self._answered += 1
        if random.random() < self._fails or self._answered % self._fails_every == 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("it fails"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("VERSION", self._version)])
