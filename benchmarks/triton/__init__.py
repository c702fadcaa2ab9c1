"""`python -m benchmarks.triton`: NVIDIA's load generator against Argosy and the real Triton, in one run.

Both servers serve the same model repository. A cell is one load: a model, a protocol, so many clients at once, tensors
of so many bytes. Each is measured in rounds that alternate between the servers (A B A B), so that a slow minute of the
machine falls on both; ratios are taken within a round, and the median of the rounds is what is told.
"""
