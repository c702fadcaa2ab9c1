"""MLServer's models: one class each."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse
from models import classify, echo


class Echo(MLModel):
    async def predict(self, payload):
        answer = echo(NumpyCodec.decode_input(payload.inputs[0]))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("OUTPUT0", answer)])


class Classify(MLModel):
    async def predict(self, payload):
        answer = classify(NumpyCodec.decode_input(payload.inputs[0]))
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("target_label", answer)])
