"""What a transformer's shape says of the GPUs it is to run on: what it takes of each, and which split suits them.

Arithmetic over a `ModelShape`, the declared parallelism and traffic, and the nodes' GPUs; nothing is measured here.
"""
