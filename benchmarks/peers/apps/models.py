"""What every peer serves."""

import os

import numpy as np
import onnxruntime

_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.intra_op_num_threads = 1
_SESSION = onnxruntime.InferenceSession(os.environ["MODEL"], _OPTIONS, providers=["CPUExecutionProvider"])


def echo(values):
    return np.asarray(values, np.float32)


def classify(values):
    return _SESSION.run(["target_label"], {"bytes": np.asarray(values, np.int32).reshape(1, 2048)})[0]
