"""The same model for Triton's Python backend, as its users write it: host arrays in, host arrays out."""

import json
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.device = parameters["DEVICE"]["string_value"]
        # Behind the stub's own packages: its numpy has to be the one it was built for.
        sys.path += [parameters["PACKAGES"]["string_value"], str(Path(__file__).parent)]
        import bert
        import torch

        self.torch = torch
        self.model = bert.Bert().to(self.device)

    def execute(self, requests):
        torch = self.torch
        arrays = [pb_utils.get_input_tensor_by_name(request, "ids").as_numpy() for request in requests]
        with torch.inference_mode():
            vectors = self.model(torch.from_numpy(np.concatenate(arrays)).to(self.device)).cpu().numpy()
        ends = np.cumsum([len(array) for array in arrays])[:-1]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("vector", np.ascontiguousarray(part))])
            for part in np.split(vectors, ends)
        ]
