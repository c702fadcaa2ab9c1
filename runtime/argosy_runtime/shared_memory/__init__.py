"""Shared memory of clients: tensors that a request names instead of carrying them (Triton's extensions
`system_shared_memory` and `cuda_shared_memory`).

The server never maps a client's memory: it copies inputs out of it before it looks at them, and outputs into it. So a
client that changes, shortens or removes its memory spoils its own request and nothing else.
"""
