"""The Kubernetes client for Python, pointed at a cluster."""

import argparse
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError, ProtocolError

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
    """Reads objects over HTTP. Its connections stay, one set for each thread, while every kubectl makes its own, and
    takes ten times as much of the machine.
    """

    def __init__(self, access: Access) -> None:
        self._api, self._kinds, self._words = _connected(access, retries=False), dict[str, _Kind](), _parser()

    def text(self, path: str, timeout_s: float = 60.0, **query: str) -> str:
        """Return the text at that path of the API. Raises ClusterError where it is unavailable."""
        request = self._api.param_serialize("GET", path, query_params=[*query.items()], auth_settings=["BearerToken"])
        try:
            answer = self._answer(request, timeout_s)
        except (client.ApiException, HTTPError) as error:
            raise ClusterError(f"GET {path}: {error}") from error
        if answer.status != HTTPStatus.OK:
            raise ClusterError(f"GET {path}: {answer.status} {answer.data.decode()}")
        return str(answer.data.decode())

    def _answer(self, request: tuple[Any, ...], timeout_s: float) -> Any:
        """Return the answer; a connection that the API server has closed since is opened again."""
        try:
            answer = self._api.call_api(*request, _request_timeout=timeout_s)
            answer.read()
        except ProtocolError:
            answer = self._api.call_api(*request, _request_timeout=timeout_s)
            answer.read()
        return answer

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON at that path of the API. Raises ClusterError where it is unavailable."""
        return json.loads(self.text(path, **query))

    def read(self, *words: str) -> Any:
        """Return what `kubectl get WORDS -o json` prints, parsed: an object, or a list of one or several kinds."""
        arguments = self._words.parse_intermixed_args(words)
        kinds, _, name = arguments.kinds.partition("/")
        query = {"labelSelector": arguments.selector, "fieldSelector": arguments.field_selector}
        if name := name or arguments.name:
            return self.get(f"{self._kind(kinds).path(arguments.namespace)}/{name}")
        listed = (self._list(kind, arguments.namespace, query) for kind in kinds.split(","))
        return {"kind": "List", "items": [item for items in listed for item in items]}

    def _list(self, word: str, namespace: str, query: dict[str, str]) -> list[Any]:
        kind = self._kind(word)
        listed = self.get(kind.path(namespace), **{key: value for key, value in query.items() if value})
        return [{"apiVersion": kind.version, "kind": kind.name, **resource} for resource in listed["items"]]

    def _kind(self, word: str) -> "_Kind":
        """Return the kind of a plural, singular or short name, which may have been added since the last call."""
        word = word.lower()
        if word not in self._kinds:
            self._kinds = dict(self._discovered())
        if word not in self._kinds:
            raise ClusterError(f"the API server has no kind {word!r}")
        return self._kinds[word]

    def _discovered(self) -> Iterator[tuple[str, "_Kind"]]:
        """Yield kinds by their names, the preferred ones last, as they replace others of the same name."""
        versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in self.get("/apis")["groups"])]
        for version in reversed(versions):
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            for resource in self.get(root)["resources"]:
                kind = _Kind(root, version, resource["kind"], resource["name"], resource["namespaced"])
                if "/" not in kind.plural:
                    for word in (kind.plural, kind.name.lower(), *resource.get("shortNames", ())):
                        yield word, kind
                        yield f"{word}.{version.partition('/')[0]}", kind


@dataclass(frozen=True)
class _Kind:
    """A kind as the API server offers it."""

    root: str
    version: str
    name: str
    plural: str
    namespaced: bool

    def path(self, namespace: str) -> str:
        """Return the path of its objects."""
        return f"{self.root}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{self.root}/{self.plural}"


def _parser() -> argparse.ArgumentParser:
    """Return a parser of kubectl's words. Each thread needs its own: intermixed arguments change it while it parses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds")
    parser.add_argument("name", nargs="?")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("-l", "--selector", default="")
    parser.add_argument("--field-selector", default="")
    return parser


def _connected(access: Access, retries: Any = None) -> Any:
    settings = client.Configuration()
    settings.retries = retries
    return config.new_client_from_config(config_file=str(access.kubeconfig), client_configuration=settings)
