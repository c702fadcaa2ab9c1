"""`python -m benchmarks.language`: language models served by Argosy, next to their engine alone and to `vllm serve`."""
