"""ONNX models made faster for ONNX Runtime: the graph optimized beforehand, 16 bits on GPUs, int8 on processors.

What may live here: `settings` (what is asked, *pure*), `steps` and what it calls (run in processes of their own:
`files`, `quantizing`, `optimizing`, `inspecting`), `running` for the gate. Option names are those of onnxruntime's own
Python API. The backend `onnxruntime` serves what is made.
"""

from .builder import OnnxRuntimeBuilder

BUILDER = OnnxRuntimeBuilder()

__all__ = ["BUILDER"]
