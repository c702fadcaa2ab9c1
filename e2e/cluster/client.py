"""The Kubernetes client for Python, pointed at a cluster."""

import json
import threading
from http import HTTPStatus
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from e2e.cluster.access import Access
from e2e.cluster.errors import ClusterError


def core(access: Access) -> Any:
    """Return the core API with the rights of `access`; its own connections, so one per thread.

    Any: the client's own types call every field optional and take no plain JSON.
    """
    return client.CoreV1Api(_connected(access))


def custom(access: Access) -> Any:
    """Return the API of custom resources, likewise."""
    return client.CustomObjectsApi(_connected(access))


class Reader(threading.local):
    """Reads what is looked at again and again. Its connections stay, one set for each thread, while every kubectl makes
    its own, and takes ten times as much of the machine.
    """

    def __init__(self, access: Access) -> None:
        self._api = _connected(access)

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON at that path of the API. Raises ClusterError where it is unavailable."""
        asked = self._api.param_serialize("GET", path, query_params=[*query.items()], auth_settings=["BearerToken"])
        try:
            answer = self._api.call_api(*asked)
            answer.read()
        except (client.ApiException, HTTPError) as error:
            raise ClusterError(f"GET {path}: {error}") from error
        if answer.status != HTTPStatus.OK:
            raise ClusterError(f"GET {path}: {answer.status} {answer.data.decode()}")
        return json.loads(answer.data)


def _connected(access: Access) -> Any:
    return config.new_client_from_config(config_file=str(access.kubeconfig))
