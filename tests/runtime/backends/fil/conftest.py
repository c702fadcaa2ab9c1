"""Argosy's server, as its users start it."""

from tests.peers.fixtures import argosy_server

__all__ = ["argosy_server"]
