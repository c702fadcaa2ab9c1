"""The part of ModelOpt for ONNX models."""
