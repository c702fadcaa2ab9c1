"""Of ONNX models."""
