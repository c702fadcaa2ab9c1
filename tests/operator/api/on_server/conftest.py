"""API servers of a current Kubernetes with the CRDs, and with objects that are older than the CRDs' rules."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.plane.crd_servers import crd_servers
from e2e.cluster.programs import crd_apiserver
from e2e.cluster.waiting import wait_for
from e2e.starting import give_up
from tests.operator.api.conftest import changed
from tests.operator.api.on_server.asking import Asking, current
from tests.operator.api.rules.breaking import BREAKING

OLD = "old"
"""The namespace of the objects that are older than the rules."""
FINALIZER = "argosy.dev/tests"


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Asking]]:
    """Yield the oldest and the newest Kubernetes that the server emulates, with the CRDs installed."""
    try:
        programs = crd_apiserver.find()
    except ClusterUnavailableError as error:
        give_up(error)
    with crd_servers(tmp_path_factory.mktemp("crds"), programs) as running, ExitStack() as open_ones:
        oldest, newest = (open_ones.enter_context(closing(Asking(server))) for server in running.values())
        for server in (oldest, newest):
            _prepare(server)
        yield {"oldest": oldest, "newest": newest}


@pytest.fixture(scope="session", params=["oldest", "newest"])
def server(request: pytest.FixtureRequest, servers: Mapping[str, Asking]) -> Asking:
    """Return each of them."""
    return servers[request.param]


def _prepare(server: Asking) -> None:
    """Store an object that breaks each rule while the CRDs have none, then install those that have."""
    server.install([_without_rules(definition) for definition in current()])
    for number, (kind, changes, _) in enumerate(BREAKING):
        metadata = {"name": f"breaking-{number}", "namespace": OLD, "finalizers": [FINALIZER]}
        stored = server.create(changed(kind, changes) | {"metadata": metadata})
        assert stored.right, stored.message
    server.install(current())
    kinds = {kind: changed(kind, changes) for kind, changes, _ in BREAKING}
    for kind, wrong in kinds.items():
        what = f"the rules of {kind} at Kubernetes {server.version}"
        wait_for(what, lambda wrong=wrong: not server.create(wrong, dry=True).right, 60, 0.05)


def _without_rules(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_rules(value) for key, value in part.items() if key != "x-kubernetes-validations"}
    return [_without_rules(item) for item in part] if isinstance(part, list) else part
