"""Argosy's inference server: Triton's repository, Triton's protocol, scheduling of its own."""

import os

from .schemas import postpone_client

# gRPC, which a model may import, reads this when it is imported. Its fork handlers run between the fork and the exec of
# a model's process, where they can crash it; no process is ever forked here without an exec, so none of them is needed.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
postpone_client()
