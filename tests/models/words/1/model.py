"""Streams its text word by word; the word `fail` becomes an error, and `nothing` a response without outputs."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._stream(request)

    def _stream(self, request):
        sender = request.get_response_sender()
        for word in pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0].split():
            sender.send(self._response(word))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _response(self, word):
        if word == b"fail":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("the word was fail"))
        if word == b"nothing":
            return pb_utils.InferenceResponse([])
        return pb_utils.InferenceResponse([pb_utils.Tensor("text_output", np.array([word], np.object_))])
