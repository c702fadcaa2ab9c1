"""A stand-in of vLLM: the same names and arguments, and a model that repeats its prompt.

What it says is in the hands of tests: see `AsyncLLM`. `tests/runtime/backends/vllm/test_vllm_names.py` compares it with
the real package, where that is installed.
"""

__version__ = "0.32.0"
