"""Where the API server of custom resources comes from, and which versions of Kubernetes it emulates."""

from pathlib import Path

import pytest
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.plane.crd_servers import emulated_versions
from e2e.cluster.programs import crd_apiserver

HELP = """\
      --emulated-version strings      The versions different components emulate.
                                      '--emulated-version=wardle=1.2,kube=1.31'.
                                      Options are: kube=1.33..1.36(default:1.36)
"""


def test_the_oldest_and_the_newest_version_are_read_from_its_help() -> None:
    assert emulated_versions(HELP) == ("1.33", "1.36")
    with pytest.raises(ClusterUnavailableError, match="no version"):
        emulated_versions("--secure-port int")


def test_a_machine_without_it_gets_advice_on_building_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crd_apiserver, "TARBALL", tmp_path / "none.xz")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("ARGOSY_KUBE_BUILD", raising=False)
    with pytest.raises(ClusterUnavailableError, match=r"no none\.xz; ARGOSY_KUBE_BUILD=1 builds it"):
        crd_apiserver.find(tmp_path / "programs")
    assert [path.name for path in (tmp_path / "programs").iterdir()] == ["lock"]


def test_the_release_is_that_of_the_package() -> None:
    packages = ["golang-k8s-api-dev_0.36.4-1_all.deb", "golang-k8s-apiextensions-apiserver-dev_0.36.4-1_all.deb"]
    assert crd_apiserver.kubernetes_version(packages) == "1.36.4"
    with pytest.raises(ClusterUnavailableError, match="sid has no package"):
        crd_apiserver.kubernetes_version(packages[:1])
