"""Fails as HOW says: `raise`, `silent`, `error`, a name of an error code, `none`, `short`, `type`; else answers HOW."""

import numpy as np
import triton_python_backend_utils as pb_utils

CODES = [
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
]


class TritonPythonModel:
    def execute(self, requests):
        ways = [self._how(request) for request in requests]
        if "raise" in ways:
            raise ValueError("the model failed on purpose")
        if "silent" in ways:
            raise ValueError
        if "none" in ways:
            return None
        if "short" in ways:
            return []
        return [self._answer(how) for how in ways]

    def _how(self, request):
        return pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()[0].decode()

    def _answer(self, how):
        if how == "error":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("an error of the model's"))
        if how in CODES:
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(f"this is {how}", getattr(pb_utils.TritonError, how))
            )
        if how == "type":
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([1.5], np.float32))])
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([how.encode()], np.object_))])
