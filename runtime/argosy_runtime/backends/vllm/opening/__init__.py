"""What an engine is started with: its arguments, its devices, and vLLM itself."""
