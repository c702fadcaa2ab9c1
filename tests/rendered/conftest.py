"""The servers that rendered repositories are given to."""

from tests.peers.fixtures import argosy_server, triton_server

__all__ = ["argosy_server", "triton_server"]
