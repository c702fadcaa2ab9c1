"""What comes before an engine: the model's files looked at, texts to calibrate on, conversion and quantization."""
