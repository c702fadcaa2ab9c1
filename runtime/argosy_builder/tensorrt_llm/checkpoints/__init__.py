"""Steps before an engine: inspecting the model's files, texts to calibrate on, conversion and quantization."""
