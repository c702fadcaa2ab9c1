"""The Kubernetes client for Python, pointed at a cluster."""

from typing import Any

from kubernetes import client, config

from e2e.cluster.access import Access


def core(access: Access) -> Any:
    """The core API with the rights of `access`; its own connections, so one per thread.

    Any: the client's own types call every field optional and take no plain JSON.
    """
    return client.CoreV1Api(config.new_client_from_config(config_file=str(access.kubeconfig)))


def custom(access: Access) -> Any:
    """The API of custom resources, likewise."""
    return client.CustomObjectsApi(config.new_client_from_config(config_file=str(access.kubeconfig)))
