"""ONNX models made into plans of TensorRT, for the GPU that the build runs on.

What may live here: `settings` and `profiles` (what is asked, *pure*), `causes` (why a build failed, *pure*), `building`
and what it calls (run in processes of their own: `configuring`, `calibrating`, `monitoring`, `converting`), `checking`
(the engine read back), `running` for the gate. Option names are those of `IBuilderConfig` in TensorRT's Python. The
backend `tensorrt` serves what is made.

TensorRT 10 and 11. From 11 on a network's types are those of the ONNX file, so a lower precision is made in the file,
by NVIDIA's ModelOpt; before, TensorRT chooses it layer by layer.
"""

from .builder import TensorRtBuilder

BUILDER = TensorRtBuilder()

__all__ = ["BUILDER"]
