"""Answers what the request has in addition to its tensors, as JSON."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        parameters = json.loads(request.parameters())
        facts = {
            "request_id": request.request_id(),
            "correlation_id": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "outputs": sorted(request.requested_output_names()),
            "inputs": [tensor.name() for tensor in request.inputs()],
        }
        return pb_utils.InferenceResponse([self._text("PARAMETERS", parameters), self._text("REQUEST", facts)])

    def _text(self, name, value):
        return pb_utils.Tensor(name, np.array([json.dumps(value, sort_keys=True).encode()], np.object_))
