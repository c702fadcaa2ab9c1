"""Layouts: what a plan is made of while it is made."""

from argosy.planning.packing.layout.layout import Layout
from argosy.planning.packing.layout.replicas import Assignment, PlacedReplica, Replica
from argosy.planning.packing.layout.server import Server
from argosy.planning.packing.layout.topology import Topology

__all__ = ["Assignment", "Layout", "PlacedReplica", "Replica", "Server", "Topology"]
