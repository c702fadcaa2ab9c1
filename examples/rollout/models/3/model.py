"""Version 3, which has a bug: it reads texts as ASCII, and fails for those in French or German."""

import numpy as np
import triton_python_backend_utils as pb_utils

FRIENDLY = {"good", "great", "kind", "thanks", "love", "merci"}
UNFRIENDLY = {"bad", "awful", "hate", "broken", "late"}


def polarity(text: str) -> float:
    """Return a number from -1 (unfriendly) to 1 (friendly)."""
    words = text.lower().split()
    return sum((word in FRIENDLY) - (word in UNFRIENDLY) for word in words) / max(1, len(words))


class TritonPythonModel:
    """The model, as Triton's Python backend calls it."""

    def execute(self, requests):
        """Answer each request of a batch; one that cannot be read has an error."""
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
            try:
                scores = np.array([[polarity(text.decode("ascii"))] for text in texts[:, 0]], np.float32)
            except UnicodeDecodeError as error:
                responses.append(pb_utils.InferenceResponse(error=pb_utils.TritonError(f"no ASCII: {error}")))
                continue
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("polarity", scores)]))
        return responses
