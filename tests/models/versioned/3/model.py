"""Answers the version it was loaded as."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"].encode()

    def execute(self, requests):
        return [self._answer() for _ in requests]

    def _answer(self):
        return pb_utils.InferenceResponse([pb_utils.Tensor("VERSION", np.array([self.version], np.object_))])
