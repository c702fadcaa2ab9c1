"""JSON as Triton reads and writes it: text, tensor data, parameters, NVIDIA's messages."""
