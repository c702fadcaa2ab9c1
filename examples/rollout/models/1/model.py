"""Version 1: the share of a text's words that are friendly, less that of unfriendly ones."""

import numpy as np
import triton_python_backend_utils as pb_utils

FRIENDLY = {"good", "great", "kind", "thanks", "love", "schön", "merci"}
UNFRIENDLY = {"bad", "awful", "hate", "broken", "late"}


def polarity(text: str) -> float:
    """Return a number from -1 (unfriendly) to 1 (friendly)."""
    words = text.lower().split()
    return sum((word in FRIENDLY) - (word in UNFRIENDLY) for word in words) / max(1, len(words))


class TritonPythonModel:
    """The model, as Triton's Python backend calls it."""

    def execute(self, requests):
        """Answer each request of a batch."""
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
            scores = np.array([[polarity(text.decode())] for text in texts[:, 0]], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("polarity", scores)]))
        return responses
