"""`python -m benchmarks.peers`: Argosy next to MLServer, LitServe, BentoML and Ray Serve, over HTTP with JSON.

Each serves the same two models, in one worker or replica and without batching, as its own introduction has it: `echo`
answers sixteen numbers, `classify` runs a real ONNX model (magika, which tells a file's type from 2048 of its bytes).
Each peer lives in an environment of its own in the cache; one that cannot be installed is told of and left out. The
load generator is one for all, ours, because only MLServer speaks the protocol that NVIDIA's does.
"""
