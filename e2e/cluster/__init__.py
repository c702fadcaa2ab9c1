"""A real Kubernetes cluster on one machine, by one command or from Python.

What may live here: everything that starts, feeds and removes a cluster, and nothing that knows Argosy.
"""

from e2e.cluster.access import Access
from e2e.cluster.cluster import Cluster, existing
from e2e.cluster.errors import ClusterError, ClusterUnavailableError

__all__ = ["Access", "Cluster", "ClusterError", "ClusterUnavailableError", "existing"]
