"""What is asked of TensorRT-LLM, and whether the model can do it. Pure."""
