"""The chart as Helm's own code reads it, and a real API server to give it to."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.cluster import Cluster
from e2e.cluster.waiting import wait_for
from e2e.deployed.release import helm as helm_library
from e2e.starting import started

CHART = Path(__file__).parents[2] / "charts/argosy"
WITHOUT_CRDS = {"crds": {"install": False}}


@pytest.fixture(scope="session")
def helm() -> Any:
    """Return Helm as a library."""
    return helm_library()


@pytest.fixture(scope="session")
def cluster(
    end_early: Callable[[Callable[[], None]], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Yield a control plane of its own, for Helm brings the CRDs; what its Pods would do is of no interest here."""
    with started(Cluster.control_plane, tmp_path_factory.mktemp("cluster")) as cluster:
        end_early(cluster.down)
        yield cluster


@dataclass(slots=True)
class Release:
    """A release of the chart in a namespace of its own, by Helm's own calls."""

    helm: Any
    cluster: Cluster
    namespace: str
    chart: Path = CHART
    name: str = "argosy"
    config: Any = field(init=False)

    def __post_init__(self) -> None:
        self.config = self.helm.Configuration(self.namespace, str(self.cluster.kubeconfig))

    def install(self, values: Mapping[str, Any], *, check_fields: bool = False) -> list[dict[str, Any]]:
        """Install the release and return its objects. `check_fields`: none may have a field unknown to Kubernetes."""
        action = self.helm.Install(self.config).run(
            self.name,
            str(self.chart),
            dict(values),
            create_namespace=True,
            wait=False,
            disable_openapi_validation=not check_fields,
        )
        return _objects(asyncio.run(action))

    def upgrade(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        action = self.helm.Upgrade(self.config).run(
            self.name, str(self.chart), dict(values), wait=False, reset_values=True
        )
        return _objects(asyncio.run(action))

    def uninstall(self) -> None:
        asyncio.run(self.helm.Uninstall(self.config).run(self.name, timeout=60))

    @property
    def account(self) -> str:
        """The operator's user, as RBAC names it."""
        return f"system:serviceaccount:{self.namespace}:argosy"


def _objects(release: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [body for body in yaml.safe_load_all(release["manifest"]) if body]


_numbers = itertools.count(1)


@pytest.fixture
def releases(helm: Any, cluster: Cluster) -> Iterator[Callable[..., Release]]:
    """Yield a function that makes releases, each in a namespace of its own; uninstall what is left at the end."""
    made: list[Release] = []

    def make(namespace: str = "", **arguments: Any) -> Release:
        made.append(Release(helm, cluster, namespace or f"chart-{next(_numbers)}", **arguments))
        return made[-1]

    yield make
    for release in made:
        if cluster.kubectl("get", "secrets", "-n", release.namespace, "-l", "owner=helm", "-o", "name"):
            release.uninstall()


@pytest.fixture
def release(releases: Callable[..., Release]) -> Release:
    """Return one release, not yet installed."""
    return releases()


def only(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the one object of this kind."""
    (match,) = [body for body in objects if body["kind"] == kind]
    return match


def established(cluster: Cluster, *crds: str) -> None:
    """Wait until these kinds can be used. kubectl fails where a CRD is so new that it says nothing of itself yet."""
    words = ("wait", "--for=condition=Established", "--timeout=20s", *(f"crd/{name}" for name in crds))
    wait_for("the kinds", lambda: cluster.kubectl_process(*words).returncode == 0, 60)
