"""Runs apart from the tests: `python split_model.py FOLDER [DEVICE…]`.

Loads the model `lm` of FOLDER on these devices, and answers each line of standard input, token ids, with a line of the
tokens that follow; first come the ids of the processes it is made of.
"""

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import EngineState, InstanceSpec
from argosy_runtime.backends.transformers.instance import open_on
from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor

NEW_TOKENS = 12


class Lines:
    """Lines from the model to its server, printed."""

    def log(self, level: str, message: str) -> None:
        print(f"{level}: {message}", flush=True)

    def report(self, state: EngineState) -> None:
        """Do nothing: the state is never read."""

    def lost(self, error: ServingError) -> None:
        print(f"lost: {error.message}", flush=True)


class Answer:
    """One answer that is waited for."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.response: InferResponse | None = None

    def send(self, _: int, response: InferResponse) -> None:
        self.response = response
        self.came.set()

    def is_cancelled(self, _: int) -> bool:
        return False


def main() -> None:
    """Load, answer, close."""
    folder, *devices = sys.argv[1:]
    config = text_format.Parse((Path(folder) / "config.pbtxt").read_text(), ModelConfig())
    spec = InstanceSpec(config, 1, Path(folder), Path(folder) / "1", "lm_0", "KIND_MODEL", 0)
    host: Any = Lines()
    try:
        instance = open_on(spec, host, tuple(devices))
    except ServingError as error:
        print(f"refused: {error.message}", flush=True)
        return
    print("ranks:", *(child.pid for child in psutil.Process().children()), flush=True)
    for line in sys.stdin:
        ids = np.array(line.split(), np.int32)
        inputs = {
            "input_ids": Tensor("input_ids", "INT32", ids),
            "request_output_len": Tensor("request_output_len", "INT32", np.array([NEW_TOKENS], np.int32)),
        }
        answer: Any = Answer()
        instance.execute([InferRequest("lm", inputs)], answer)
        answer.came.wait()
        if answer.response.error is not None:
            print(f"error: {answer.response.error.message}", flush=True)
        else:
            print("tokens:", *answer.response.outputs[0].array.tolist(), flush=True)
    instance.close()
    print("closed", flush=True)


if __name__ == "__main__":
    main()
