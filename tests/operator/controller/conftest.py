"""The API server of the cluster's tests, for what the controller posts there itself."""

from tests.operator.cluster.conftest import cluster, connection, declared, namespace, requests

__all__ = ["cluster", "connection", "declared", "namespace", "requests"]
