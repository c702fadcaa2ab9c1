"""The engine: calls `trtllm-build`, and reads the engine's own `config.json`."""
