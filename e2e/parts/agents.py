"""Agents without servers, for benchmarks: whatever an agent's ConfigMap asks for is said to be loaded at once.

Only the operator is at work then. `FakeAgents` plays the agents of every server in a cluster, as
`e2e.cluster.standins.fake.FakeKubelets` plays the kubelets.
"""

import threading
from collections.abc import Callable
from typing import Any

from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from argosy_agent.contract import LoadedModel, LoadState, RenderedRepository
from argosy_agent.contract.documents import (
    DESIRED_KEY,
    STATE_KEY,
    AgentState,
    fingerprint,
    parse_repository,
    state_text,
)
from e2e.cluster.access import Access
from e2e.cluster.background import Background
from e2e.cluster.client import core

SERVER = "argosy.dev/server"
WATCH_S = 2


class FakeAgents(Background):
    """The loops behind the agents, in threads: `with FakeAgents(access) as agents: …`.

    `heard` is told of every repository, as (namespace, repository), when it reaches its agent.
    """

    def __init__(
        self, access: Access, heard: Callable[[str, RenderedRepository], None] = lambda space, has: None
    ) -> None:
        self._api, self._heard = core(access), heard
        self._pods: dict[tuple[str, str], str] = {}
        self._texts: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()
        super().__init__(lambda: self.repeat(self._configs), lambda: self.repeat(self._servers))

    def _configs(self) -> None:
        self._follow(self._api.list_config_map_for_all_namespaces, self._requested)

    def _servers(self) -> None:
        self._follow(self._api.list_pod_for_all_namespaces, self._runs)

    def _follow(self, listing: Callable[..., Any], take: Callable[[Any], None]) -> None:
        listed = listing(label_selector=SERVER)
        for item in listed.items:
            take(item)
        version = listed.metadata.resource_version
        while not self.stopping.is_set():
            stream = watch.Watch()
            for event in stream.stream(
                listing, label_selector=SERVER, resource_version=version, timeout_seconds=WATCH_S
            ):
                if event["type"] != "DELETED":
                    take(event["object"])
            version = stream.resource_version or version

    def _requested(self, config: Any) -> None:
        text = (config.data or {}).get(DESIRED_KEY)
        if text is None:
            return
        key = (config.metadata.namespace, config.metadata.name)
        with self._lock:
            if self._texts.get(key) == text:
                return
            self._texts[key] = text
        self._heard(key[0], parse_repository(text))
        self._say(key)

    def _runs(self, pod: Any) -> None:
        key = (pod.metadata.namespace, pod.metadata.labels[SERVER])
        if pod.status.phase != "Running" or pod.metadata.deletion_timestamp or self._pods.get(key) == pod.metadata.uid:
            return
        self._pods[key] = pod.metadata.uid
        self._say(key)

    def _say(self, key: tuple[str, str]) -> None:
        """Write what the server's state would be, once it has both a Pod and a repository."""
        with self._lock:
            text, pod = self._texts.get(key), self._pods.get(key)
            if text is None or pod is None:
                return
            has = parse_repository(text)
            loaded = tuple(LoadedModel(m.name, v, LoadState.READY) for m in has.models for v in m.versions)
            state = AgentState(pod, True, True, loaded, has, fingerprint(text))
            body = {"data": {STATE_KEY: state_text(state)}}
            try:
                self._api.patch_namespaced_config_map(f"{key[1]}-state", key[0], body)
            except ApiException as error:
                if error.status != 404:
                    raise
