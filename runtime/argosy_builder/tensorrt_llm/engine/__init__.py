"""The engine itself: how `trtllm-build` is called, and what the engine says of itself."""
